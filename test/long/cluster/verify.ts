import { type Event, isFinal, type Run, type Session } from '../../../src/index.ts';
import { checkLog, hasState } from '../chaos/verify.ts';
import { isDurable } from './agents.ts';
import type { Faults } from './faults.ts';
import type { Known, Ledger } from './ledger.ts';
import { markOf, validation_failed } from './speech.ts';
import type { Wire } from './wire.ts';

export interface Verified {
  /** How many runs of each kind ended in each status. */
  readonly outcomes: Record<string, number>;
  readonly events: number;
}

/**
 * Holds what each of the nodes has in the end to what clients were told, and that to what was asked; `whole` unless
 * some of it was given up.
 */
export async function verify(ledger: Ledger, nodes: readonly Wire[], whole: boolean): Promise<Verified> {
  const outcomes: Record<string, number> = {};
  let events = 0;
  const turns = new Map<string, string[]>();
  await eachOf([...ledger.runs.values()], async (known) => {
    const kept = await agreed(known, nodes, ledger.faults);
    if (kept === undefined) return;
    events += kept.events.length;
    const { run } = kept;
    const code = run.error === undefined ? '' : `: ${run.error.data?.reason ?? run.error.code}`;
    const outcome = `${known.order.kind} ${run.status}${code}`;
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    judge(known, kept, ledger.faults);
    const turn = run.status === 'completed' ? tokensOf(kept.events).find((one) => one.startsWith('turn:')) : undefined;
    if (turn !== undefined) turns.set(known.session_id, [...(turns.get(known.session_id) ?? []), turn]);
  });
  for (const [session_id, taken] of turns) {
    if (new Set(taken).size < taken.length)
      ledger.faults.add('runs of a session did not take turns', `session ${session_id}: ${taken}`);
  }
  // What was given up is maybe made, and nobody was told.
  if (whole) await checkList(ledger, nodes);
  return { outcomes: Object.fromEntries(Object.entries(outcomes).sort(([a], [b]) => (a < b ? -1 : 1))), events };
}

interface Kept {
  readonly run: Run;
  readonly events: readonly Event[];
}

/** What all nodes say of a run, to the byte; undefined where it cannot be read. */
async function agreed(known: Known, nodes: readonly Wire[], faults: Faults): Promise<Kept | undefined> {
  const { run_id, lines, order } = known;
  const place = `run ${run_id} (${order.kind})`;
  try {
    const all = async (path: string): Promise<string> => {
      const [first = '', ...others] = await Promise.all(nodes.map((node) => node.get(path)));
      const other = others.find((text) => text !== first);
      if (other !== undefined) faults.add('two nodes disagree', `${place}, GET ${path}: ${differing(first, other)}`);
      return first;
    };
    const log = await all(`/runs/${run_id}/events`);
    const seen = `{"events":[${lines.join(',')}]}`;
    if (log !== seen) faults.add('the log is not what was seen', `${place}: ${differing(log, seen)}`);
    const run: Run = JSON.parse(await all(`/runs/${run_id}`));
    const { history = [] }: Session = JSON.parse(await all(`/sessions/${run.session_id}`));
    if (order.kind !== 'turn' && history.length !== (run.status === 'completed' ? 1 + run.output.length : 0))
      faults.add('a session has not the messages of its run', `${place}, ${run.status}: ${history}`);
    return { run, events: JSON.parse(log).events };
  } catch (error) {
    faults.add('a run cannot be read', `${place}: ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}

/** What holds for a run that was given this order. */
function judge(known: Known, { run, events }: Kept, faults: Faults): void {
  const { order, cancel, readers, answers } = known;
  const { kind } = order;
  const fault = (what: string, why: string): void =>
    faults.add(what, `run ${run.run_id} of ${JSON.stringify(order)}: ${why}`);
  if (!isFinal(run.status)) {
    fault('a run is not over', run.status);
    return;
  }
  // Who answers a pinned run while its process dies cannot know what came of it.
  if (run.error?.data?.reason !== 'run_interrupted') for (const doubt of known.doubts) faults.add(...doubt);
  const tokens = tokensOf(events);
  try {
    checkLog({ run, events });
  } catch (error) {
    fault('a log that is none', error instanceof Error ? error.message : String(error));
  }
  const problem = validation_failed(order, tokens, run.status === 'completed', known.replies);
  if (problem !== undefined) fault('a run says what it should not', `${problem}, in ${tokens.join(' ')}`);
  const marks = new Set(tokens.flatMap((token) => markOf(token) ?? []));
  if (!isDurable(kind) && marks.size > 1) fault('a pinned run was written by two processes', [...marks].join(', '));
  for (const { last } of readers) {
    if (last !== events.length) fault('a reader did not see all', `${last} of ${events.length}`);
  }
  for (const answer of answers) {
    if (!hasState(events, answer)) fault('an answer is not in the log', answer);
  }
  const reason = run.error?.data?.reason;
  const allowed =
    run.status === 'completed' ? cancel !== 'taken' : run.status === 'cancelled' ? cancel !== 'none' : !isDurable(kind);
  if (!allowed || (run.status === 'failed' && reason !== 'run_interrupted'))
    fault('a run ended as it should not', `${run.status} ${JSON.stringify(run.error ?? '')}, its cancel was ${cancel}`);
}

/** All runs that there are were acknowledged, and all that were acknowledged are there. */
async function checkList({ runs, faults }: Ledger, [node]: readonly Wire[]): Promise<void> {
  const listed = new Set<string>();
  for (let cursor = ''; ; ) {
    const page: { runs: Run[]; next_cursor?: string } = JSON.parse(
      (await node?.get(`/runs?limit=100${cursor}`)) ?? '{"runs":[]}',
    );
    for (const { run_id } of page.runs) {
      if (listed.has(run_id)) faults.add('a run is listed twice', run_id);
      listed.add(run_id);
      if (!runs.has(run_id)) faults.add('there is a run that nobody was told of', run_id);
    }
    if (page.next_cursor === undefined) break;
    cursor = `&cursor=${page.next_cursor}`;
  }
  for (const run_id of runs.keys()) if (!listed.has(run_id)) faults.add('a run is not listed', run_id);
}

/** Each token is an event of its own. */
const tokensOf = (events: readonly Event[]): string[] =>
  events.flatMap((event) => (event.type === 'message.part' ? (event.part.content ?? '').trim() : []));

/** Where two texts part. */
function differing(one: string, other: string): string {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const from = Math.max(0, at - 100);
  return `at ${at} of ${one.length} and ${other.length}: …${one.slice(from, at + 200)}… and …${other.slice(from, at + 200)}…`;
}

/** Sixteen at a time. */
async function eachOf<T>(list: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const left = [...list];
  const worker = async (): Promise<void> => {
    for (let one = left.pop(); one !== undefined; one = left.pop()) await work(one);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}
