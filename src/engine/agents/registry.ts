import { type Agent, isAgent, nameProblem } from '../../core/agent.ts';
import { closest } from '../../core/closest.ts';
import { errorOf, fail } from '../../core/errors.ts';
import type { AgentFigures, RunLists } from '../../core/ports/run-lists.ts';
import { toolHeadersIn } from '../../core/tool-headers.ts';
import type { AgentManifest, AgentStatus } from '../../schema/agent.ts';
import { checkSchema } from './json-schema.ts';

/** An agent and its source for error messages: a file, or a name for the code that passed it in. */
export interface Hosted {
  readonly agent: Agent;
  readonly source: string;
}

/** The agents of a server, by name. */
export class Registry {
  #agents: ReadonlyMap<string, Hosted> = new Map();
  #tools: ReadonlyMap<string, Hosted> = new Map();
  #broken = 0;

  /**
   * `broken` counts the files that did not load.
   * @throws Error that names agent and source where a name is invalid or used twice, or a schema of a tool is invalid
   */
  constructor(hosted: Iterable<Hosted>, broken = 0) {
    this.replace(hosted, broken);
  }

  /** Replaces all agents. A run that has begun keeps its agent. @throws as the constructor */
  replace(hosted: Iterable<Hosted>, broken = 0): void {
    const agents = byName(hosted);
    this.#tools = byToolName(agents.values());
    this.#agents = agents;
    this.#broken = broken;
  }

  /** Files of agents that did not load. Operators see the number; the log names them. */
  get broken(): number {
    return this.#broken;
  }

  /** @throws RivuletError `agent_unknown` */
  get(name: string): Agent {
    const agent = this.find(name);
    if (agent === undefined) throw fail('agent_unknown', name.slice(0, 100));
    return agent;
  }

  /**
   * The agent that another one calls. Only the author of the calling agent is told a similar name: a caller over HTTP may
   * not know of all agents.
   * @throws RivuletError `agent_unknown`
   */
  called(name: string): Agent {
    const agent = this.find(name);
    if (agent === undefined)
      throw fail('agent_unknown', name.slice(0, 100), closest(name.slice(0, 100), [...this.#agents.keys()]));
    return agent;
  }

  find(name: string): Agent | undefined {
    return this.#agents.get(name)?.agent;
  }

  /** The agent that is offered as a tool of this name. */
  findTool(name: string): Agent | undefined {
    return this.#tools.get(name)?.agent;
  }

  names(): string[] {
    return [...this.#agents.keys()];
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

/** What an agent is called where agents are tools. */
export const toolName = ({ name, metadata }: AgentManifest): string => metadata?.tool?.name ?? name;

function byToolName(hosted: Iterable<Hosted>): Map<string, Hosted> {
  const tools = new Map<string, Hosted>();
  for (const one of hosted) {
    const { manifest } = one.agent;
    const name = toolName(manifest);
    const other = tools.get(name);
    if (other !== undefined) {
      throw new Error(
        `${one.source}: tool name "${name}" of agent "${manifest.name}" is already that of agent "${other.agent.manifest.name}" in ${other.source}; rename one in metadata.tool.name`,
      );
    }
    tools.set(name, one);
    checkToolSchemas(one);
  }
  return tools;
}

/** At the start, so that no client meets an invalid schema. */
function checkToolSchemas({ agent, source }: Hosted): void {
  const { name, metadata } = agent.manifest;
  for (const field of ['input_schema', 'output_schema'] as const) {
    const schema = metadata?.tool?.[field];
    try {
      if (schema !== undefined) checkSchema(schema);
    } catch (error) {
      const problem = errorOf(error).message;
      throw new Error(`${source}: agent "${name}": metadata.tool.${field} is no JSON Schema: ${problem}`);
    }
  }
  try {
    toolHeadersIn(metadata?.tool?.input_schema ?? {});
  } catch (error) {
    throw new Error(`${source}: agent "${name}": metadata.tool.input_schema: ${errorOf(error).message}`);
  }
}

/** The manifests of agents, with the figures of their ended runs, all or those of an owner, if there are any. */
export async function manifestsOf(store: RunLists, agents: readonly Agent[], owner?: string): Promise<AgentManifest[]> {
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
