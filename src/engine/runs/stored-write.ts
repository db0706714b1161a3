import { errorOf, fail } from '../../core/errors.ts';
import { type Outcome, type RunRow, rowAfter, type Write } from '../../core/ports/run-store.ts';
import type { RunServices } from './run-services.ts';

/**
 * Changes a run that no process executes. The write raises the epoch, so that a node that is about to execute the run is
 * fenced. After the write, the run is offered: a process executes it, with the change. Returns false where another write
 * came first.
 * @throws RivuletError `conflict`, `store_failed`, `store_unavailable`
 */
export async function changeStored(
  services: RunServices,
  row: RunRow,
  change: Partial<RunRow>,
  more: Partial<Write> = {},
): Promise<boolean> {
  const { commits, active, offers } = services;
  const { run_id, epoch, last } = row;
  const next = { ...row, ...change, epoch: epoch + 1 };
  const write: Write = { row: next, from: epoch, expect: last, lines: [], node: null, ...more };
  const outcome = await commits.of(run_id).commitOne(write, () => {
    active.onWritten(rowAfter(write));
    offers.offer(run_id);
  });
  return isWritten(services, run_id, outcome);
}

/**
 * Whether the store has taken a write; false where another write came first.
 * @throws RivuletError `store_failed`, `conflict` where another request has used the key of the write
 */
export function isWritten({ executions }: RunServices, run_id: string, outcome: Outcome | undefined): boolean {
  if (outcome === 'taken') return true;
  if (outcome === 'fenced') return false;
  if (typeof outcome !== 'object' || !('rejected' in outcome)) throw fail('conflict', run_id);
  executions.logFor(run_id).error(`the store does not take a change of the run: ${errorOf(outcome.rejected).message}`);
  throw fail('store_failed');
}
