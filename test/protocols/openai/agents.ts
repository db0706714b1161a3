import { concat, concatMap, from, map, merge, of, timer } from 'rxjs';
import { citation, file, json, progress, trajectory } from '../../../src/index.ts';
import { agent, askOnce, echo, never, tokens } from '../../support/agents.ts';

/** One of everything that an agent may say. */
export const everything = agent('everything', () => [
  'Let me ',
  'look. ',
  progress('looking', { done: 1, total: 2 }),
  trajectory({ message: 'It may be in the book.' }),
  trajectory({ tool_name: 'look', tool_input: { where: 'book' }, tool_output: { page: 3 } }),
  'It is "there".\n',
  citation({ url: 'https://example.com/book', title: 'Book', start_index: 13, end_index: 27 }),
  file('dot.png', Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0, 1]), 'image/png'),
  file('notes.txt', 'Page 3'),
  { content_type: 'image/png', content_url: 'https://example.com/a(1).png' },
  { role: 'agent/everything', parts: [{ content_type: 'text/plain', content: 'Bye.' }] },
]);

/** Asks the client to run its tool. */
const weather = agent('weather', (_, context) =>
  concat(
    of('One moment. '),
    context
      .await('The weather, please.', { tool: { name: 'get_weather', input: { city: 'Oslo' } } })
      .pipe(map(({ message }) => `It is ${message.parts[0]?.content}.`)),
  ),
);

/** Asks for a yes or a no, with a schema. */
const approval = agent('approval', (_, context) =>
  context
    .await('May I?', { schema: { type: 'boolean' } })
    .pipe(map(({ message }) => `Approved: ${message.parts[0]?.content}`)),
);

/** Asks twice. */
const twice = agent('twice', async function* (_, context) {
  yield 'a';
  const first = await context.await('First?');
  yield `b ${first.message.parts[0]?.content}`;
  const second = await context.await('Second?');
  yield `c ${second.message.parts[0]?.content}`;
});

/** Speaks while it awaits; the client's second run reads that in any case. */
const busy = agent('busy', (_, context) =>
  merge(
    context.await('Well?').pipe(map(() => 'Thanks.')),
    timer(0).pipe(concatMap(() => of('still ', trajectory({ message: 'hm' }), 'here. '))),
  ),
);

const broken = agent('broken', () => concat(of('half '), from(Promise.reject(new Error('It broke.')))));

/** Calls a tool that gives no output. */
const steps = agent('steps', () => [trajectory({ tool_name: 'look' })]);

/** Says what its request says, as JSON. */
const mirror = agent('mirror', (input, { request, session }) => [
  json({ input: input.map(({ role, parts }) => ({ role, parts })), request, session: session.id }),
]);

const counted = agent('counted', (_, context) => {
  context.usage({ input_tokens: 3, output_tokens: 4 });
  return ['counted'];
});

/** How many messages the session had before. */
const remembers = agent('remembers', async (_, { session }) => {
  const before: string[] = [];
  await session.history.forEach((message) => void before.push(message.parts[0]?.content ?? ''));
  return `before: ${before.join(', ')}`;
});

export const all = [
  everything,
  weather,
  approval,
  twice,
  busy,
  broken,
  steps,
  mirror,
  counted,
  remembers,
  echo,
  askOnce,
  never,
  tokens,
];
