import { runEventOf } from '../../core/encode.ts';
import { fail } from '../../core/errors.ts';
import type { Extras, RunRow, Store } from '../../core/store.ts';
import type { AwaitResume, Run } from '../../schema/run.ts';
import { newId } from '../ids.ts';
import type { AcceptedRun } from './create.ts';
import type { RunServices } from './run-services.ts';

/** A reply that waits in the store for the node that has the run in memory. */
export interface ForwardedReply {
  readonly left: string;
  /** The id of the event that asked. */
  readonly at: number;
  readonly reply: AwaitResume;
  /** What the node keeps together with its taking it. */
  readonly extras: Extras;
}

/** What that node writes then; of several replies that were left, it takes one. */
export interface AcceptedReply {
  readonly taken: string;
}

/** The journal of a run that is not durable has nothing else. */
export const forwardedReplies = async (store: Store, run_id: string): Promise<(ForwardedReply | AcceptedReply)[]> =>
  (await store.journal(run_id)).map((line) => JSON.parse(line));

/**
 * Leaves a reply for a run that another node has in its memory, and waits until the run goes on.
 * @throws RivuletError `conflict`, `node_unresponsive`, `store_unavailable`
 */
export async function forwardReply(
  services: RunServices,
  row: RunRow,
  run: Run,
  reply: AwaitResume,
  extras: Extras,
): Promise<AcceptedRun> {
  const { store, executions } = services;
  const until = performance.now() + executions.limits.requestTimeout;
  const { run_id, last, snapshot } = row;
  const left: ForwardedReply = { left: newId(), at: snapshot, reply, extras };
  // No change to the row, which is the other node's.
  const [outcome] = await store.commit([{ row, expect: last, lines: [], journal: [JSON.stringify(left)] }]);
  if (outcome !== 'taken') throw fail('conflict', run_id);
  await whenRunGoesOn(services, row, until);
  const taken = (await forwardedReplies(store, run_id)).some((entry) => 'taken' in entry && entry.taken === left.left);
  if (!taken) throw fail('conflict', run_id);
  const { await_request: _, ...rest } = run;
  return { run_id, run: JSON.stringify({ ...rest, status: 'in-progress' }), after: last };
}

/** Resolves when the run has an event of its own after the question, `until` then. @throws RivuletError `node_unresponsive` */
async function whenRunGoesOn({ active }: RunServices, { run_id, last }: RunRow, until: number): Promise<void> {
  const cursor = await active.openCursor(run_id, { after: last });
  const timer = setTimeout(() => cursor.close(), until - performance.now());
  try {
    for await (const { lines } of cursor) if (lines.some((line) => runEventOf(line) !== undefined)) return;
  } finally {
    clearTimeout(timer);
  }
  throw fail('node_unresponsive', run_id);
}
