import type { Store } from '../../core/store.ts';
import type { Execution } from '../execution/execution.ts';
import { type LeftReply, mailboxOf, type TakenReply } from '../runs/leave-reply.ts';

/** Gives a run that awaits in the memory of this node the reply that another node has left for it, where there is one. */
export async function takeReply(store: Store, execution: Execution): Promise<void> {
  const { durable, run, log } = execution;
  if (durable || run.status !== 'awaiting' || log.outcome !== undefined) return;
  const { run_id, snapshot } = log.row;
  const left = (await mailboxOf(store, run_id)).find(
    (entry): entry is LeftReply => 'at' in entry && entry.at === snapshot,
  );
  // It may have gone on, or left, while the mailbox was read.
  const same = execution.run.status === 'awaiting' && log.row.snapshot === snapshot && log.outcome === undefined;
  if (left === undefined || !same) return;
  const taken: TakenReply = { taken: left.left };
  execution.resume(left.reply, { ...left.extras, journal: [JSON.stringify(taken)] });
}
