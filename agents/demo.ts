import {
  type AgentContext,
  type AgentOutput,
  type AwaitResume,
  citation,
  defineAgent,
  file,
  progress,
  textOf,
  trajectory,
} from 'rivulet';
import {
  concat,
  concatMap,
  defer,
  delay,
  from,
  ignoreElements,
  map,
  type Observable,
  of,
  switchMap,
  timer,
} from 'rxjs';

interface River {
  readonly name: string;
  /** Kilometres. */
  readonly length: number;
}

interface Trip {
  readonly river: string;
  readonly days: number;
  readonly boat?: boolean;
}

/** What a session remembers of its earlier runs. */
interface Memory {
  readonly trips: readonly Trip[];
}

const rivers: readonly River[] = [
  { name: 'Nile', length: 6_650 },
  { name: 'Amazon', length: 6_400 },
  { name: 'Yangtze', length: 6_300 },
  { name: 'Danube', length: 2_850 },
  { name: 'Rhine', length: 1_230 },
];

const source = 'https://en.wikipedia.org/wiki/List_of_river_systems_by_length';
const fact = 'The **Nile** and the **Amazon** have swapped first place more than once';

const reply = {
  type: 'object',
  required: ['river', 'days'],
  properties: {
    river: { type: 'string', title: 'River', enum: rivers.map(({ name }) => name) },
    days: { type: 'integer', title: 'Days', minimum: 1, maximum: 60, default: 14 },
    boat: { type: 'boolean', title: 'By boat' },
  },
};

/**
 * Plans a trip along a river, to show what a run can do: text token by token, steps, a citation, a chart, a file, a
 * question with a form, and memory. It needs no model and no network. `pace` is the time between two tokens, in
 * milliseconds.
 */
export const createDemo = (pace = 25) =>
  defineAgent(
    {
      name: 'demo',
      description: 'Plans a river trip with you: a tour of what an agent can stream. Needs no model.',
      input_content_types: ['text/plain'],
      metadata: {
        license: 'MIT',
        programming_language: 'TypeScript',
        tags: ['example', 'tour'],
        examples: ['Plan a river trip', 'Which river is the longest?'],
        capabilities: [{ name: 'Tour', description: 'Steps, citations, a chart, a form, a file and memory.' }],
      },
    },
    (_, context) =>
      from(context.session.state<Memory>()).pipe(
        switchMap((memory = { trips: [] }) => {
          const greeting = greetingOf(memory);
          const ask = context.await('Where shall we go?', { schema: reply });
          return concat(
            tokens(greeting, pace),
            tokens(`${fact}; it depends on where one starts to measure.\n\n`, pace),
            of(cited(greeting.length)),
            compared(context, pace),
            tokens(table(), pace),
            of(file('rivers.svg', chart())),
            ask.pipe(concatMap((answer) => planned(context, memory, tripOf(answer), pace))),
          );
        }),
      ),
    // A restart in mid-stream, or while the question is open, costs nothing.
    { durable: true },
  );

export default createDemo();

/** Text as a model streams it. */
const tokens = (text: string, pace: number): Observable<string> =>
  from(text.match(/\S+\s*/g) ?? []).pipe(concatMap((token) => of(token).pipe(delay(pace))));

function greetingOf({ trips }: Memory): string {
  const last = trips.at(-1);
  return last === undefined
    ? '## Five rivers\n\nHello! I plan river trips, to show what an agent can stream. '
    : `## Welcome back\n\nThis is trip ${trips.length + 1}; the last one was **${last.days} days** on the ${last.river}. `;
}

/** The source of the fact; positions count the characters of the message's text. */
const cited = (start_index: number): AgentOutput =>
  citation({
    start_index,
    end_index: start_index + fact.length,
    url: source,
    title: 'River systems by length',
    description: 'A list with the methods of measurement.',
  });

/** A step that takes a while. Its progress is an event beside the message, its result a part of the message. */
function compared(context: AgentContext, pace: number): Observable<AgentOutput> {
  const looking = from(rivers).pipe(
    concatMap(({ name }, index) =>
      of(progress(`Measuring the ${name}`, { done: index + 1, total: rivers.length })).pipe(delay(pace * 8)),
    ),
  );
  const longest = context.step('compare lengths', () => timer(pace).pipe(map(() => rivers[0])));
  return concat(
    looking,
    longest.pipe(
      map((river) =>
        trajectory({
          message: 'Compared the lengths of five rivers.',
          tool_name: 'compare_lengths',
          tool_input: { rivers: rivers.map(({ name }) => name) },
          tool_output: { longest: river?.name, kilometres: river?.length },
        }),
      ),
    ),
  );
}

const km = (length: number): string => length.toLocaleString('en');

const table = (): string =>
  `| River | Length |\n| --- | ---: |\n${rivers.map(({ name, length }) => `| ${name} | ${km(length)} km |`).join('\n')}\n\n`;

/** A bar for each river. */
function chart(): string {
  const bars = rivers.map(({ name, length }, index) => {
    const [y, width] = [14 + index * 32, Math.round(length / 20)];
    return `<text x="12" y="${y + 15}">${name}</text><rect x="92" y="${y}" width="${width}" height="20" rx="4" fill="#2f7fb8"/><text x="${width + 100}" y="${y + 15}">${km(length)} km</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 180" width="520" height="180" font-family="sans-serif" font-size="14" fill="#55646f">${bars.join('')}</svg>`;
}

const tripOf = ({ message }: AwaitResume): Trip => JSON.parse(textOf(message));

/** The answer to the form: a text, a file, and what the next run of the session knows. */
function planned(context: AgentContext, { trips }: Memory, trip: Trip, pace: number): Observable<AgentOutput> {
  const length = rivers.find(({ name }) => name === trip.river)?.length ?? 0;
  const daily = Math.max(1, Math.round(length / trip.days));
  const how = trip.boat === true ? 'by boat' : 'on land';
  const text = `### ${trip.river}, ${trip.days} days\n\nThat is **${km(daily)} km a day** ${how}. I put the plan into a file; start me again in this session, and I will remember it.\n`;
  const plan = `# ${trip.river}\n\n- ${km(length)} km in ${trip.days} days, ${how}\n- ${km(daily)} km a day\n`;
  return concat(
    tokens(text, pace),
    of(file('plan.md', plan)),
    defer(() => context.session.setState({ trips: [...trips, trip] })).pipe(ignoreElements()),
  );
}
