import { runEventOf } from '../../core/encode.ts';
import { errorOf, fail } from '../../core/errors.ts';
import { fold, resumedEvent } from '../../core/run-state.ts';
import type { Extras, Outcome, RunRow, Store } from '../../core/store.ts';
import type { AwaitResume, Run } from '../../schema/run.ts';
import { newId } from '../ids.ts';
import type { AcceptedRun } from './create.ts';
import type { RunServices } from './run-services.ts';

/** A reply that waits in the store for the node that executes the run. `left` is its id. */
export interface ForwardedReply {
  readonly left: string;
  /** The id of the event that asked the question. */
  readonly at: number;
  readonly reply: AwaitResume;
  /** Data that the node commits when it accepts the reply. */
  readonly extras: Extras;
  /** What the reply's request is in the traces. */
  readonly trace?: string;
}

/** Written by that node: the id of the reply that it accepted, of those that were forwarded. */
export interface AcceptedReply {
  readonly taken: string;
}

/** Reads the journal of a run that is not durable, which has no other entries. */
export const forwardedReplies = async (store: Store, run_id: string): Promise<(ForwardedReply | AcceptedReply)[]> =>
  (await store.journal(run_id)).map((line) => JSON.parse(line));

/**
 * Stores a reply for the node that executes the run, and waits until the run goes on. A run that does not is offered: a
 * node that lives still has its lease, and the offer is ignored. A run whose node is gone, and whose lease was lost with
 * the queue, is ended by the node that takes it. Resolves to undefined where another write came first.
 * @throws RivuletError `node_unresponsive`, and as `isWritten`
 */
export async function forwardReply(
  services: RunServices,
  row: RunRow,
  run: Run,
  reply: AwaitResume,
  extras: Extras,
  trace: string | null,
): Promise<AcceptedRun | undefined> {
  const { store, executions, offer } = services;
  const until = performance.now() + executions.limits.requestTimeout;
  const { run_id, last, snapshot } = row;
  const forwarded: ForwardedReply = { left: newId(), at: snapshot, reply, extras, ...(trace !== null && { trace }) };
  // The row does not change: it belongs to the other node.
  const [outcome] = await store.commit([{ row, expect: last, lines: [], journal: [JSON.stringify(forwarded)] }]);
  if (!isWritten(services, run_id, outcome)) return undefined;
  try {
    await whenRunGoesOn(services, row, until);
  } catch (error) {
    offer(run_id);
    throw error;
  }
  const taken = (await forwardedReplies(store, run_id)).some(
    (entry) => 'taken' in entry && entry.taken === forwarded.left,
  );
  if (!taken) return undefined;
  return { run_id, run: JSON.stringify(fold(run, resumedEvent(run, reply))), after: last };
}

/**
 * Whether the store has taken the write of a reply; false where another write came first.
 * @throws RivuletError `store_failed`, `conflict` where another request has used the reply's key
 */
export function isWritten({ executions }: RunServices, run_id: string, outcome: Outcome | undefined): boolean {
  if (outcome === 'taken') return true;
  if (outcome === 'fenced') return false;
  if (typeof outcome !== 'object' || !('rejected' in outcome)) throw fail('conflict', run_id);
  executions.logFor(run_id).error(`the store does not take a reply: ${errorOf(outcome.rejected).message}`);
  throw fail('store_failed');
}

/**
 * Resolves when the run has a run event after the question, at the latest at `until`.
 * @throws RivuletError `node_unresponsive`
 */
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
