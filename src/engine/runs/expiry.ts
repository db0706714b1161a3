import { fail } from '../../core/errors.ts';
import type { Execution } from '../execution/execution.ts';
import type { KnownRun } from '../log/checkpoint.ts';
import { readRun } from '../log/stored-run.ts';
import { endStoredRun } from './cancel.ts';
import type { RunServices } from './run-services.ts';

const page = 100;
/** Milliseconds after which a re-entered run that awaits is not what stops its process: it may wait for weeks. */
const survival = 60_000;

/**
 * Ends runs that are past `runTimeout`, `idleTimeout` or the end of their await. Resolves to the number of runs that are due and
 * left as they are, such as sleeping runs whose agent is not here. The next call gets it as `left`: the store lists these runs
 * first, and they must not hide the others.
 */
export async function expireRuns(services: RunServices, left: number): Promise<number> {
  const { store, active, executions, offers } = services;
  const now = executions.now();
  let leftNow = 0;
  for (const execution of active.all()) expire(services, execution, now);
  for (const row of await store.due(now, left + page)) {
    if (active.local(row.run_id) !== undefined) continue;
    try {
      // The process that gets the run ends it, so that its agent cleans up. The node that has it already does so as well.
      if (row.parked === null && executions.registry.find(row.agent_name) !== undefined) offers.offer(row.run_id);
      else if (row.status === 'awaiting' && asksUntil(await readRun(store, row)) <= now)
        await endStoredRun(services, row, fail('await_timeout').toJSON());
      else leftNow += 1;
    } catch (error) {
      leftNow += 1;
      // An error of one run must not keep the others from ending.
      executions.logFor(row.run_id).warn(`could not be ended after its await timed out; will retry: ${String(error)}`);
    }
  }
  return leftNow;
}

function expire({ active, executions: { limits } }: RunServices, execution: Execution, now: string): void {
  const { passivateAfter } = limits;
  if (execution.log.outcome !== undefined) return;
  execution.sweep();
  const { idle } = execution;
  const error = execution.timeoutError(now);
  if (error !== undefined) {
    // A run that has gone on elsewhere must not end here: its agent would clean up.
    if (execution.holdsOrTakesAgain()) execution.failWith(error);
  } else if (passivateAfter > 0 && execution.durable && idle > passivateAfter && execution.mayLeaveMemory())
    void active.release(execution, true);
  else if (execution.run.status === 'awaiting' && execution.log.row.attempts > 0 && idle > survival)
    execution.log.change({ attempts: 0 });
}

/** When the question of a stored run expires: before everything where it has none. */
const asksUntil = ({ run: { await_request } }: KnownRun): string =>
  await_request === undefined ? never : (await_request.expires_at ?? end);

/** Before everything, and after it. */
const never = '';
const end = '\uffff';
