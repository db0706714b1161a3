import { historyOf } from '../../../src/core/history.ts';
import { type Event, fold, isFinal, type Message, type Run, type Session } from '../../../src/index.ts';
import { withoutInput } from '../../support/details.ts';
import { markOf, outputProblem } from './expected-output.ts';
import type { Known, Ledger } from './ledger.ts';
import type { Faults } from './measurements.ts';
import { isDurable, type Order } from './orders.ts';
import type { Wire } from './wire.ts';

export interface Verified {
  /** The number of runs by kind and final status. */
  readonly outcomes: Record<string, number>;
  readonly events: number;
}

export interface VerifyOptions {
  /** False if the test was abandoned: then runs may be listed that no client knows. */
  readonly complete: boolean;
  /** The orders of all runs in the store, for runs that no client knows. */
  readonly orders?: ReadonlyMap<string, Order>;
}

interface StoredRun {
  readonly run: Run;
  readonly events: readonly Event[];
  readonly order: Order;
}

/** Compares the runs on each node with what clients received, and with the orders. Problems are added to the faults. */
export async function verify(ledger: Ledger, nodes: readonly Wire[], options: VerifyOptions): Promise<Verified> {
  const { faults } = ledger;
  const outcomes: Record<string, number> = {};
  const sessions = new Map<string, StoredRun[]>();
  let events = 0;
  const ids = new Set([...ledger.runs.keys(), ...(options.orders?.keys() ?? [])]);
  await forEachConcurrently([...ids], async (run_id) => {
    const known = ledger.runs.get(run_id);
    const order = known?.order ?? options.orders?.get(run_id);
    if (order === undefined) return;
    const stored = await readFromAll(run_id, order, known, nodes, faults);
    if (stored === undefined) return;
    events += stored.events.length;
    const { run } = stored;
    const reason = run.error === undefined ? '' : `: ${run.error.data?.reason ?? run.error.code}`;
    const outcome = `${order.kind} ${run.status}${reason}`;
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    checkRun(stored, known, faults);
    const session_id = run.session_id ?? '';
    sessions.set(session_id, [...(sessions.get(session_id) ?? []), stored]);
  });
  await forEachConcurrently([...sessions], ([session_id, runs]) => checkSession(session_id, runs, nodes, faults));
  if (options.complete) await checkList(ledger, nodes);
  return { outcomes: Object.fromEntries(Object.entries(outcomes).sort(([a], [b]) => (a < b ? -1 : 1))), events };
}

/** The body of a GET, which has to be the same on all nodes. */
async function getFromAll(path: string, place: string, nodes: readonly Wire[], faults: Faults): Promise<string> {
  const [first = '', ...others] = await Promise.all(nodes.map((node) => node.get(path)));
  const other = others.find((text) => text !== first);
  if (other !== undefined) faults.add('two nodes disagree', `${place}, GET ${path}: ${difference(first, other)}`);
  return first;
}

/** The run as stored; undefined if it cannot be read. */
async function readFromAll(
  run_id: string,
  order: Order,
  known: Known | undefined,
  nodes: readonly Wire[],
  faults: Faults,
): Promise<StoredRun | undefined> {
  const place = `run ${run_id} (${order.kind})`;
  try {
    const log = await getFromAll(`/runs/${run_id}/events`, place, nodes, faults);
    const received = known === undefined ? log : `{"events":[${known.lines.join(',')}]}`;
    if (log !== received)
      faults.add('the log differs from the received events', `${place}: ${difference(log, received)}`);
    const run = withoutInput<Run>(JSON.parse(await getFromAll(`/runs/${run_id}`, place, nodes, faults)));
    return { run, events: JSON.parse(log).events, order };
  } catch (error) {
    faults.add('a run cannot be read', `${place}: ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}

function checkRun(stored: StoredRun, known: Known | undefined, faults: Faults): void {
  const { run, events, order } = stored;
  const fault = (kind: string, example: string): void =>
    faults.add(kind, `run ${run.run_id} of ${JSON.stringify(order)}: ${example}`);
  if (!isFinal(run.status)) {
    fault('a run is not final', run.status);
    return;
  }
  // A client that replies while the process of a run dies cannot know the outcome, unless the run is durable.
  if (run.error?.data?.reason !== 'run_interrupted') for (const doubt of known?.doubts ?? []) faults.add(...doubt);
  const logProblem = problemInLog(run, events);
  if (logProblem !== undefined) fault('a log is invalid', `${logProblem}: ${JSON.stringify(events)}`);
  const tokens = tokensOf(events);
  const completed = run.status === 'completed';
  const problem = known && outputProblem(order, tokens, completed, known.replies);
  if (problem !== undefined) fault('a run has wrong output', `${problem}, in ${tokens.join(' ')}`);
  const marks = new Set(tokens.flatMap((token) => markOf(token) ?? []));
  if (!isDurable(order.kind) && marks.size > 1) fault('two processes wrote a run that is not durable', `${[...marks]}`);
  for (const { last } of known?.readers ?? []) {
    if (last !== events.length) fault('a reader did not receive all events', `${last} of ${events.length}`);
  }
  const states = new Set(statesOf(events));
  for (const response of known?.responses ?? []) {
    if (!states.has(canonical(JSON.parse(response)))) fault('a response is not in the log', response);
  }
  const cancel = known?.cancel ?? 'none';
  const allowed = completed
    ? cancel !== 'accepted'
    : run.status === 'cancelled'
      ? cancel !== 'none'
      : !isDurable(order.kind) && run.error?.data?.reason === 'run_interrupted';
  if (!allowed)
    fault('a run has a wrong status', `${run.status} ${JSON.stringify(run.error ?? '')}, cancel: ${cancel}`);
}

/** A log begins and ends with the right events, and folds into its Run. */
function problemInLog(run: Run, events: readonly Event[]): string | undefined {
  const [first] = events;
  if (first?.type !== 'run.created') return 'the first event is not run.created';
  if (events.filter(({ type }) => type === 'run.created').length !== 1) return 'it was created twice';
  const ends = events.filter((event) => 'run' in event && isFinal(event.run.status));
  if (ends.length !== 1 || events.at(-1) !== ends[0]) return `it has ${ends.length} final events`;
  let folded = structuredClone(first.run);
  for (const event of events.slice(1)) {
    // Only the final event carries the output.
    const output = 'run' in event && isFinal(event.run.status) ? folded.output : [];
    if ('run' in event && canonical(event.run.output) !== canonical(output)) return `${event.type} has another output`;
    folded = fold(folded, structuredClone(event));
  }
  return canonical(folded) === canonical(run) ? undefined : `it does not fold into ${JSON.stringify(run)}`;
}

/** The Run after each run event, with the output before it. */
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

/** Without the time at which a run that did not complete has ended its last message. */
const untimed = (messages: readonly Message[]): Message[] =>
  messages.map(({ completed_at: _, created_at: __, ...message }) => message);

/** The history has the messages of each final run once, without others in between; orders take turns. */
async function checkSession(
  session_id: string,
  runs: readonly StoredRun[],
  nodes: readonly Wire[],
  faults: Faults,
): Promise<void> {
  const place = `session ${session_id}`;
  try {
    const { history = [] }: Session = JSON.parse(await getFromAll(`/sessions/${session_id}`, place, nodes, faults));
    const [node] = nodes;
    const messages: Message[] = await Promise.all(
      history.map(async (url) => JSON.parse((await node?.get(new URL(url).pathname)) ?? '{}')),
    );
    const completed = runs.filter(({ run }) => run.status === 'completed');
    const final = runs.filter(({ run }) => isFinal(run.status));
    const missing = new Map(final.map((stored) => [stored.order.key, stored.run]));
    for (let at = 0; at < messages.length; ) {
      const { key }: Order = JSON.parse(messages[at]?.parts[0]?.content ?? '{}');
      const run = missing.get(key);
      missing.delete(key);
      const turn = run === undefined ? [] : historyOf(run, '');
      const stored = messages.slice(at + 1, at + 1 + turn.length);
      if (run === undefined || canonical(untimed(stored)) !== canonical(untimed(turn))) {
        return faults.add('a session has a wrong history', `${place} at ${at}: ${JSON.stringify(messages.slice(at))}`);
      }
      at += 1 + turn.length;
    }
    for (const run of missing.values()) faults.add('a session lacks messages', `${place}, run ${run.run_id}`);
    const turns = completed.flatMap(({ events }) => tokensOf(events).filter((token) => token.startsWith('turn:')));
    if (new Set(turns).size < turns.length) faults.add('runs of a session did not take turns', `${place}: ${turns}`);
  } catch (error) {
    faults.add('a session cannot be read', `${place}: ${error instanceof Error ? error.message : error}`);
  }
}

/** All listed runs were acknowledged, or may be of a creation without a response; all acknowledged runs are listed. */
async function checkList({ runs, faults, unanswered }: Ledger, [node]: readonly Wire[]): Promise<void> {
  const listed = new Set<string>();
  for (let cursor = ''; ; ) {
    const page: { runs: Run[]; next_cursor?: string } = JSON.parse(
      (await node?.get(`/runs?limit=100${cursor}`)) ?? '{"runs":[]}',
    );
    for (const { run_id } of page.runs) {
      if (listed.has(run_id)) faults.add('a run is listed twice', run_id);
      listed.add(run_id);
    }
    if (page.next_cursor === undefined) break;
    cursor = `&cursor=${page.next_cursor}`;
  }
  const unknown = [...listed].filter((run_id) => !runs.has(run_id));
  if (unknown.length > unanswered) faults.add('runs are listed that no client created', `${unknown}`);
  for (const run_id of runs.keys()) if (!listed.has(run_id)) faults.add('a run is not listed', run_id);
}

/** Each token is an event. */
const tokensOf = (events: readonly Event[]): string[] =>
  events.flatMap((event) =>
    event.type === 'message.part' ? (event.part.content ?? '').split(' ').filter(Boolean) : [],
  );

/** JSON with sorted keys. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, inner) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

/** The position and the surroundings of the first difference. */
function difference(one: string, other: string): string {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const from = Math.max(0, at - 100);
  return `at ${at} of ${one.length} and ${other.length}: …${one.slice(from, at + 200)}… and …${other.slice(from, at + 200)}…`;
}

/** Sixteen at a time. */
export async function forEachConcurrently<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}
