import type { Agent } from '../core/agent.ts';
import type { AgentFigures, Store } from '../core/store.ts';
import type { AgentManifest, AgentStatus } from '../schema/agent.ts';

/** Manifests with the figures of the runs that were really executed; no figures before the first ended. */
export async function withStatus(store: Store, agents: readonly Agent[]): Promise<AgentManifest[]> {
  const figures = await store.figures(agents.map((agent) => agent.manifest.name));
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

/** Cancelled runs count nowhere: they say nothing about the agent. */
function statusOf({ completed, failed, tokens, seconds }: AgentFigures): AgentStatus {
  const ended = completed + failed;
  return {
    avg_run_tokens: round(tokens / ended),
    avg_run_time_seconds: round(seconds / ended),
    success_rate: round((completed / ended) * 100),
  };
}
