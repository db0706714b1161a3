import type { Outcome, Write } from '../../core/ports/run-store.ts';
import type { GroupCommits } from '../log/group-commits.ts';
import type { ActiveRuns } from './active-runs.ts';

/** What this process has counted for the runs of one agent. */
export interface AgentCounts {
  /** Events that are durable. */
  events: number;
  /** Parts of executions that have left memory, without those that they replayed. */
  parts: number;
  /** Executions that continue one of an earlier process. */
  reentries: number;
  /** Executions that had to stop because another process has the run. */
  fenced: number;
}

/** Stands for all agents that this process does not host, so that a shared store cannot make the numbers many. */
export const otherAgents = '_other';

/** Plain numbers of this process that only grow. */
export class EngineCounts {
  readonly #byAgent = new Map<string, AgentCounts>();
  readonly #isHosted: (agent_name: string) => boolean;
  #storeErrors = 0;

  constructor(commits: GroupCommits, active: ActiveRuns, isHosted: (agent_name: string) => boolean) {
    this.#isHosted = isHosted;
    commits.events.on('committed', (writes, outcomes) => this.#onCommitted(writes, outcomes));
    // Each failed commit is retried.
    commits.events.on('failed', () => (this.#storeErrors += 1));
    active.events.on('removed', ({ run, log, parts }) => {
      const known = this.of(run.agent_name);
      known.parts += parts;
      if (log.outcome === 'fenced') known.fenced += 1;
    });
  }

  get storeErrors(): number {
    return this.#storeErrors;
  }

  /** A copy of all counts, by agent. */
  get agents(): Map<string, AgentCounts> {
    return new Map([...this.#byAgent].map(([name, known]) => [name, { ...known }]));
  }

  of(agent_name: string): AgentCounts {
    const known = this.#byAgent.get(agent_name);
    if (known !== undefined) return known;
    if (agent_name !== otherAgents && !this.#isHosted(agent_name)) return this.of(otherAgents);
    const counts: AgentCounts = { events: 0, parts: 0, reentries: 0, fenced: 0 };
    this.#byAgent.set(agent_name, counts);
    return counts;
  }

  #onCommitted(writes: readonly Write[], outcomes: readonly Outcome[]): void {
    for (const [index, { row, lines }] of writes.entries()) {
      if (outcomes[index] === 'taken' && lines.length > 0) this.of(row.agent_name).events += lines.length;
    }
  }
}

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
export function loadOf(commits: GroupCommits, active: ActiveRuns, counts: EngineCounts): EngineLoad {
  const { agents, storeErrors } = counts;
  const { working, awaiting } = active;
  let backlog = 0;
  for (const { run, log, parts } of active.all()) {
    backlog += log.backlog;
    const known = agents.get(run.agent_name);
    if (known !== undefined) known.parts += parts;
  }
  return { working, awaiting, backlog, failing: commits.failing, storeErrors, agents };
}
