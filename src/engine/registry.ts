import { type Agent, isAgent, nameProblem } from '../core/agent.ts';
import { fail } from '../core/errors.ts';
import type { AgentFigures, Store } from '../core/store.ts';
import type { AgentManifest, AgentStatus } from '../schema/agent.ts';

/** An agent and its source for error messages: a file, or a name for the code that passed it in. */
export interface Hosted {
  readonly agent: Agent;
  readonly source: string;
}

/** The agents of a server, by name. */
export class Registry {
  #agents: ReadonlyMap<string, Hosted>;

  /** @throws Error that names agent and source where a name is invalid or used twice */
  constructor(hosted: Iterable<Hosted>) {
    this.#agents = byName(hosted);
  }

  /** Replaces all agents. A run that has begun keeps its agent. @throws as the constructor */
  replace(hosted: Iterable<Hosted>): void {
    this.#agents = byName(hosted);
  }

  /** @throws RivuletError `agent_unknown` */
  get(name: string): Agent {
    const agent = this.find(name);
    if (agent === undefined) throw fail('agent_unknown', name.slice(0, 100));
    return agent;
  }

  find(name: string): Agent | undefined {
    return this.#agents.get(name)?.agent;
  }

  /** Sorted by name, so that pages of a list never overlap. */
  list(): Agent[] {
    return [...this.#agents.keys()].sort().map((name) => this.get(name));
  }
}

function byName(hosted: Iterable<Hosted>): Map<string, Hosted> {
  const agents = new Map<string, Hosted>();
  for (const one of hosted) {
    if (!isAgent(one.agent)) throw new Error(`${one.source}: expected an agent; export default defineAgent(…)`);
    const { name } = one.agent.manifest;
    const problem = nameProblem(String(name));
    if (problem !== undefined) throw new Error(`${one.source}: bad agent name "${name}": ${problem}`);
    const other = agents.get(name);
    if (other !== undefined) throw new Error(`${one.source}: agent name "${name}" is already used by ${other.source}`);
    agents.set(name, one);
  }
  return agents;
}

/** The manifests of agents, with the figures of their ended runs, all or those of an owner, if there are any. */
export async function manifestsOf(store: Store, agents: readonly Agent[], owner?: string): Promise<AgentManifest[]> {
  const names = agents.map((agent) => agent.manifest.name);
  const figures = await store.figures(names, owner);
  const byName = new Map(figures.map((one) => [one.agent_name, one]));
  return agents.map(({ manifest }) => {
    const known = byName.get(manifest.name);
    return {
      ...manifest,
      input_content_types: manifest.input_content_types ?? ['*/*'],
      output_content_types: manifest.output_content_types ?? ['*/*'],
      ...(known !== undefined && { status: statusOf(known) }),
    };
  });
}

const round = (value: number): number => Math.round(value * 1000) / 1000;

/** The figures leave out cancelled runs, which say nothing about the agent. */
function statusOf({ completed, failed, tokens, seconds }: AgentFigures): AgentStatus {
  const ended = completed + failed;
  return {
    avg_run_tokens: round(tokens / ended),
    avg_run_time_seconds: round(seconds / ended),
    success_rate: round((completed / ended) * 100),
  };
}
