import type { Outcome, Write } from '../core/store.ts';

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

/** Plain numbers that only grow, by agent. */
export class EngineCounts {
  readonly #byAgent = new Map<string, AgentCounts>();
  readonly #isHosted: (agent_name: string) => boolean;
  /** Failed commits. Each is retried. */
  storeErrors = 0;

  constructor(isHosted: (agent_name: string) => boolean) {
    this.#isHosted = isHosted;
  }

  get all(): ReadonlyMap<string, Readonly<AgentCounts>> {
    return this.#byAgent;
  }

  of(agent_name: string): AgentCounts {
    const known = this.#byAgent.get(agent_name);
    if (known !== undefined) return known;
    if (agent_name !== otherAgents && !this.#isHosted(agent_name)) return this.of(otherAgents);
    const counts: AgentCounts = { events: 0, parts: 0, reentries: 0, fenced: 0 };
    this.#byAgent.set(agent_name, counts);
    return counts;
  }

  /** One step for each write, which may have many events. */
  onCommitted(writes: readonly Write[], outcomes: readonly Outcome[]): void {
    for (let index = 0; index < writes.length; index += 1) {
      const write = writes[index];
      if (write === undefined || outcomes[index] !== 'taken' || write.lines.length === 0) continue;
      this.of(write.row.agent_name).events += write.lines.length;
    }
  }
}
