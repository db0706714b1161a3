import { type Event, fold, isFinal, type Message, type Run, type Session } from '../../../src/index.ts';
import { openDatabase } from '../../../src/stores/sqlite/driver.ts';
import { answerTo, isDurable, type Order, validation_failed } from './agents.ts';
import { compare, type Known, type Ledger, questionOf, Violation } from './ledger.ts';
import { frames, get, request, text, unexpected } from './wire.ts';
import type { World } from './world.ts';

/** A run as the server has it at the end. */
export interface Kept {
  readonly run: Run;
  readonly events: readonly Event[];
}

/** Every run there is, listed page by page; nothing may be under way that makes new ones. */
export async function listed(world: World): Promise<Run[]> {
  const all: Run[] = [];
  for (let cursor = ''; ; ) {
    const page = await get<{ runs: Run[]; next_cursor?: string }>(world, `/runs?limit=100${cursor}`);
    all.push(...page.runs);
    if (page.next_cursor === undefined) return all;
    cursor = `&cursor=${page.next_cursor}`;
  }
}

/** Brings a run to its end: waits for it, and answers what it asks. */
export async function settle(world: World, { run_id }: Run): Promise<void> {
  for (let after = 0; ; ) {
    const answer = await request(world, `/runs/${run_id}/events?after=${after}`, {
      headers: { accept: 'text/event-stream' },
    });
    if (answer.response.status === 204) return;
    let asked = false;
    for await (const { id, line } of frames(world, answer, after)) {
      after = id;
      asked = line.startsWith('{"type":"run.awaiting"');
      if (asked && (await get<Run>(world, `/runs/${run_id}`)).status === 'awaiting') break;
    }
    if (!asked) return;
    const { await_request } = await get<Run>(world, `/runs/${run_id}`);
    if (await_request === undefined) continue;
    const message = { parts: [{ content: answerTo(questionOf({ await_request })) }] };
    const resumed = await request(world, `/runs/${run_id}`, {
      body: { mode: 'async', await_resume: { type: 'message', message } },
    });
    if (resumed.response.status !== 202) throw await unexpected(world, `answering run ${run_id}`, resumed);
    await text(world, resumed);
  }
}

export async function kept(world: World, { run_id }: Run): Promise<Kept> {
  const { events } = await get<{ events: Event[] }>(world, `/runs/${run_id}/events`);
  return { run: await get<Run>(world, `/runs/${run_id}`), events };
}

/** What holds for any log: it begins and ends as it should, and folds into its Run. */
export function checkLog({ run, events }: Kept): void {
  const fault = (what: string): Violation => new Violation(`run ${run.run_id}: ${what}: ${JSON.stringify(events)}`);
  const [first] = events;
  if (first?.type !== 'run.created') throw fault('its log does not begin with its creation');
  if (!isFinal(run.status)) throw fault(`it is ${run.status} when all is over`);
  const ends = events.filter((event) => 'run' in event && isFinal(event.run.status));
  if (ends.length !== 1 || events.at(-1) !== ends[0]) throw fault(`it has ${ends.length} terminal events`);
  if (events.filter(({ type }) => type === 'run.created').length !== 1) throw fault('it was created twice');
  let folded = structuredClone(first.run);
  for (const event of events.slice(1)) {
    // A final event carries the output before it, every other one none.
    if ('run' in event && !same(event.run.output, isFinal(event.run.status) ? folded.output : []))
      throw fault(`${event.type} has another output than its log`);
    folded = fold(folded, structuredClone(event));
  }
  if (!same(folded, run)) throw fault(`its log does not fold into ${JSON.stringify(run)}`);
}

/** What holds for a run of this order, whoever knows of it. */
export function checkOutcome({ run }: Kept, order: Order, cancel: Known['cancel']): void {
  const { run_id, status, error } = run;
  const fault = (what: string): Violation => new Violation(`run ${run_id} of ${JSON.stringify(order)}: ${what}`);
  const said = run.output.flatMap(({ parts }) => parts.map(({ content }) => content ?? '')).join('');
  const problem = validation_failed(order, said, status === 'completed');
  if (problem !== undefined) throw fault(`${problem}, in ${said}`);
  if (cancel === 'taken' && status !== 'cancelled') throw fault(`its cancel was taken, and it is ${status}`);
  if (cancel === 'none' && status === 'cancelled') throw fault('nobody cancelled it');
  if (status !== 'failed') return;
  if (isDurable(order.kind)) throw fault(`it is durable, and failed: ${JSON.stringify(error)}`);
  if (error?.data?.reason !== 'run_interrupted') throw fault(`it failed: ${JSON.stringify(error)}`);
}

/** What clients were told of a run has to be what its log says. */
export function checkSeen({ events, run }: Kept, known: Known): void {
  for (const [id, line] of known.seen) compare(known, id, line, events[id - 1]);
  if (run.session_id !== known.session_id) throw new Violation(`run ${run.run_id} is of session ${run.session_id}`);
  for (const answer of known.answers) {
    if (hasState(events, answer)) continue;
    throw new Violation(`run ${run.run_id} was answered ${answer}, which its log does not have`);
  }
}

/** Whether a Run that was answered is what the log had after one of the run's own events. */
export const hasState = (events: readonly Event[], answer: string): boolean =>
  statesOf(events).includes(canonical(JSON.parse(answer)));

/** The Run as it was after each of its own events, with the output before them. */
function statesOf(events: readonly Event[]): string[] {
  const states: string[] = [];
  let run: Run | undefined;
  for (const event of events) {
    if (run !== undefined) run = fold(run, structuredClone(event));
    else if ('run' in event) run = event.run;
    if (run !== undefined && 'run' in event) states.push(canonical(run));
  }
  return states;
}

/** A session's history is its completed runs' messages, each run's together, once. Inputs are told from each other by their keys. */
export async function checkSession(
  world: World,
  session_id: string,
  runs: readonly Run[],
  inputs: Inputs,
): Promise<void> {
  const { history } = await get<Session>(world, `/sessions/${session_id}`);
  const messages = await Promise.all((history ?? []).map((url) => get<Message>(world, new URL(url).pathname)));
  const left = new Map(
    runs.filter(({ status }) => status === 'completed').map((run) => [inputs.get(run.run_id)?.key, run]),
  );
  for (let at = 0; at < messages.length; ) {
    const order: Order = JSON.parse(messages[at]?.parts[0]?.content ?? '{}');
    const run = left.get(order.key);
    left.delete(order.key);
    const output = messages.slice(at + 1, at + 1 + (run?.output.length ?? 0));
    if (run === undefined || !same(output, run.output)) {
      throw new Violation(
        `session ${session_id} has at ${at} ${JSON.stringify(messages[at])}, then ${JSON.stringify(output)}`,
      );
    }
    at += 1 + output.length;
  }
  for (const run of left.values()) throw new Violation(`session ${session_id} lacks the messages of run ${run.run_id}`);
}

export type Inputs = ReadonlyMap<string, Order>;

/** What SQLite itself thinks of the file, and what the runs in it were asked to do. Reads only. */
export function inspect(file: string): Inputs {
  const db = openDatabase(file, { readOnly: true });
  try {
    const health = db.prepare<[], { integrity_check: string }>('PRAGMA integrity_check').get()?.integrity_check;
    if (health !== 'ok') throw new Violation(`PRAGMA integrity_check says ${health}`);
    const rows = db.prepare<[], { run_id: string; input: string }>('SELECT run_id, input FROM runs').all();
    return new Map(rows.map(({ run_id, input }) => [run_id, JSON.parse(JSON.parse(input)[0].parts[0].content)]));
  } finally {
    db.close();
  }
}

/** No order was carried out twice, and no run is there that nobody can have made. */
export function checkMade(inputs: Inputs, ledger: Ledger): void {
  const keys = new Set([...inputs.values()].map(({ key }) => key));
  if (keys.size !== inputs.size) throw new Violation(`${inputs.size} runs were made of ${keys.size} orders`);
  for (const run_id of ledger.runs.keys())
    if (!inputs.has(run_id)) throw new Violation(`run ${run_id} was acknowledged, and is gone`);
  const more = inputs.size - ledger.size;
  if (more > ledger.unanswered)
    throw new Violation(`${more} runs were never acknowledged, but only ${ledger.unanswered} orders`);
}

/** Key by key: the order of keys is nobody's business. */
const same = (a: unknown, b: unknown): boolean => canonical(a) === canonical(b);

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, one) =>
    typeof one === 'object' && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
