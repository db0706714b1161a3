import { fail } from '../../core/errors.ts';
import type { RunRow, Store } from '../../core/store.ts';
import type { Event } from '../../schema/event.ts';
import { Execution } from '../execution/execution.ts';
import type { JournalEntry, Recording } from '../execution/replay.ts';
import { RunLog } from '../log/run-log.ts';
import { parseLine, readLines } from '../log/stored-run.ts';
import type { RunServices } from './run-services.ts';

/**
 * Re-enters a stored run with a new epoch, which fences any earlier execution. When the execution is started, its agent
 * first replays the log and the journal.
 * @throws RivuletError `agent_unknown`, `log_removed`, `log_damaged`, `conflict`, `store_failed`, `store_unavailable`
 */
export async function recoverRun(
  { store, commits, active, executions }: RunServices,
  row: RunRow,
  change: Partial<RunRow>,
): Promise<Execution> {
  const { run_id, epoch } = row;
  const agent = executions.registry.get(row.agent_name);
  const [[first = '', ...lines], journal, input = []] = await Promise.all([
    readLines(store, row, 0),
    journalOf(store, run_id),
    store.input(run_id),
  ]);
  const created = parseLine<Event>(run_id, first);
  if (!('run' in created)) throw fail('log_damaged', run_id);
  const log = new RunLog(commits, { ...row, ...change, epoch: epoch + 1 }, { from: epoch });
  const recording: Recording = { lines, journal };
  const execution = new Execution(agent, created.run, input, log, executions, recording);
  await active.add(execution);
  return execution;
}

/** The journal of a durable run. @throws RivuletError `log_damaged`, and any error of the store */
export const journalOf = async (store: Store, run_id: string): Promise<JournalEntry[]> =>
  (await store.journal(run_id)).map((line) => parseLine<JournalEntry>(run_id, line));
