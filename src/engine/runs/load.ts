import type { AgentCounts } from './counts.ts';
import type { RunServices } from './run-services.ts';

/** What this process does at the moment, and what it has counted since its start. */
export interface EngineLoad {
  /** Runs that work here, and runs that await here. Durable runs that await leave memory after a while. */
  readonly working: number;
  readonly awaiting: number;
  /** Characters that wait for the store. */
  readonly backlog: number;
  /** Whether the last commit failed, or a part of the store does not answer. */
  readonly failing: boolean;
  readonly storeErrors: number;
  readonly agents: ReadonlyMap<string, Readonly<AgentCounts>>;
}

/** Takes time in proportion to the runs in memory; makes no call of the store. */
export function loadOf({ commits, active, counts }: RunServices): EngineLoad {
  const { agents, storeErrors } = counts;
  let [awaiting, backlog] = [0, 0];
  for (const { run, log, parts } of active.all()) {
    if (run.status === 'awaiting') awaiting += 1;
    backlog += log.backlog;
    const known = agents.get(run.agent_name);
    if (known !== undefined) known.parts += parts;
  }
  return { working: active.working, awaiting, backlog, failing: commits.failing, storeErrors, agents };
}
