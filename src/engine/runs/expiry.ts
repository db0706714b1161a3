import { fail } from '../../core/errors.ts';
import type { Execution } from '../execution/execution.ts';
import { endStoredRun } from './end-stored.ts';
import type { RunServices } from './run-services.ts';

const page = 100;
/** Steps of clearing up in a row; each takes the store a few milliseconds at most. */
const maxSweepSteps = 200;

/** Ends what is over its time: runs that work, await or say nothing for too long. */
export async function expireRuns(services: RunServices): Promise<void> {
  const { store, active, executions } = services;
  const now = new Date().toISOString();
  for (const execution of active.all()) expire(services, execution, now);
  for (const row of await store.due(now, page)) {
    if (active.local(row.run_id) !== undefined) continue;
    try {
      await endStoredRun(services, row, fail('await_timeout').toJSON());
    } catch (error) {
      // The others have their times as well.
      executions.logFor(row.run_id).warn(`its await is over, and it could not be ended yet: ${String(error)}`);
    }
  }
}

/** Clears what is kept too long, step by step, as long as `go` says so. */
export async function sweepExpired({ store, executions: { limits } }: RunServices, go: () => boolean): Promise<void> {
  const { runTtl, idempotencyTtl, sessionTtl } = limits;
  const before = {
    keys: ago(idempotencyTtl),
    ...(runTtl > 0 && { runs: ago(runTtl) }),
    ...(sessionTtl > 0 && { sessions: ago(sessionTtl) }),
  };
  for (let step = 0; step < maxSweepSteps && go() && (await store.sweep(before)); step += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function expire({ active, executions: { limits } }: RunServices, execution: Execution, now: string): void {
  const { passivateAfter } = limits;
  if (execution.log.outcome !== undefined) return;
  const error = execution.timeoutError(now);
  if (error !== undefined) execution.failWith(error);
  else if (passivateAfter > 0 && execution.durable && execution.onlyAwaits && execution.idleFor() > passivateAfter)
    void active.release(execution);
}

const ago = (milliseconds: number): string => new Date(Date.now() - milliseconds).toISOString();
