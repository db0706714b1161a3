/** What it costs to write a log in the words of each protocol. */
import { encode } from '../../src/core/encode.ts';
import type { Event, Message, MessagePart, Run } from '../../src/index.ts';
import { token } from '../contestants/tokens.ts';
import { type Log, type Row, rows, type Write } from '../projections.ts';
import { type Figures, type MeasuredOnce, median } from '../work.ts';

const count = 20_000;
const [turns, milliseconds] = [7, 300];
/** Events of a batch: those of one commit. */
const events = 10;

/** The log of a run with one message of many tokens, as the engine writes it: the last two events have the whole text. */
function logOf(length: number): Log {
  const at = '2026-01-31T12:00:00.000Z';
  const run = (status: Run['status'], output: Message[]): Run => ({
    run_id: '01a201c2-4407-7001-80bc-e75f1d221442',
    agent_name: 'tokens',
    session_id: '01a201c2-4407-7001-80bc-e75f1d221443',
    status,
    output,
    created_at: at,
  });
  const part = (content: string): MessagePart => ({ content_type: 'text/plain', content });
  const tokens = Array.from({ length }, (_, n) => token(n));
  const message = { role: 'agent/tokens', created_at: at };
  const whole: Message = { ...message, parts: [part(tokens.join(''))], completed_at: at };
  const all: Event[] = [
    { type: 'run.created', run: run('created', []) },
    { type: 'run.in-progress', run: run('in-progress', []) },
    { type: 'message.created', message: { ...message, parts: [], completed_at: null } },
    ...tokens.map((content): Event => ({ type: 'message.part', part: part(content) })),
    { type: 'message.completed', message: whole },
    { type: 'run.completed', run: run('completed', [whole]) },
  ];
  const lines = all.map(encode);
  return Array.from({ length: Math.ceil(lines.length / events) }, (_, n) => {
    return { first: n * events + 1, lines: lines.slice(n * events, (n + 1) * events) };
  });
}

export type Prepared = NonNullable<Awaited<ReturnType<Row['prepare']>>>;

/** @throws Error if the frames do not have each token once, in order */
export async function check(id: string, make: Prepared, length: number): Promise<void> {
  let text = '';
  const decoder = new TextDecoder();
  await make(logOf(length), (frames) => {
    text += typeof frames === 'string' ? frames : decoder.decode(frames, { stream: true });
  });
  const found = [...text.matchAll(/"token (\d+) "/g)].map(([, n]) => Number(n));
  if (found.length !== length || found.some((n, index) => n !== index))
    throw new Error(`${id}: the frames do not have the tokens in order`);
}

async function measure(make: Prepared, log: Log): Promise<Figures> {
  let [bytes, times] = [0, 0];
  // Also makes one text of the pieces that were joined, as a socket does.
  const write: Write = (frames) => {
    bytes += typeof frames === 'string' ? Buffer.byteLength(frames) : frames.length;
  };
  const before = process.cpuUsage();
  const begun = performance.now();
  while (performance.now() - begun < milliseconds) {
    await make(log, write);
    times += 1;
  }
  const took = performance.now() - begun;
  const { user, system } = process.cpuUsage(before);
  const tokens = times * count;
  return {
    'frames/s': tokens / (took / 1000),
    'CPU-µs a token': (user + system) / tokens,
    'bytes a token': bytes / tokens,
  };
}

async function find(): Promise<ReadonlyMap<string, Figures>> {
  const log = logOf(count);
  const prepared = new Map<string, { make: Prepared; figures: Figures[] }>();
  for (const { id, prepare } of rows) {
    const make = await prepare();
    if (make === undefined) continue;
    await check(id, make, count);
    await measure(make, log);
    prepared.set(id, { make, figures: [] });
  }
  // In turns, so that what else the machine does concerns all of them.
  for (let turn = 0; turn < turns; turn += 1) {
    for (const { make, figures } of prepared.values()) figures.push(await measure(make, log));
  }
  return new Map([...prepared].map(([id, { figures }]) => [id, medianOf(figures)]));
}

function medianOf(figures: readonly Figures[]): Figures {
  const names = Object.keys(figures[0] ?? {});
  return Object.fromEntries(names.map((name) => [name, median(figures.map((one) => one[name] ?? Number.NaN))]));
}

export const protocols: MeasuredOnce[] = [
  {
    name: 'Frames of an answer of 20,000 tokens',
    group: 'protocols',
    about:
      'A stored log becomes the frames of each protocol, up to the texts that are written to the socket; one process, in turns. Beside them, servers that parse each event of the log and let the official library write its token: without the other events, without state and cursors.',
    columns: [
      { name: 'frames/s', digits: 0 },
      { name: 'CPU-µs a token', digits: 2 },
      { name: 'bytes a token', digits: 0 },
    ],
    base: 'ACP',
    find,
  },
];
