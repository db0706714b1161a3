import type { AgentManifest } from '../../client/client.ts';
import { formatDuration, formatNumber } from '../format.ts';
import { usePlayground } from '../playground.ts';

/** The agents beside a conversation. */
export function AgentList() {
  const { catalog, router } = usePlayground();
  const agents = catalog.agents.value;
  const { agent: selected } = router.route.value;
  return (
    <section aria-labelledby="agents-title">
      <h2 id="agents-title">Agents</h2>
      <NoAgents agents={agents} />
      <ul class="cards">
        {agents?.map((agent) => (
          <li key={agent.name}>
            <a
              class="card"
              href={router.href({ agent: agent.name, session: undefined, run: undefined, view: 'chat' })}
              aria-current={agent.name === selected ? 'true' : undefined}
            >
              <strong>{agent.name}</strong>
              <span class="description">{agent.description}</span>
              <AgentStatistics agent={agent} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The reason why there is nothing to list. */
export function NoAgents({ agents }: { agents: readonly AgentManifest[] | undefined }) {
  if (agents === undefined) return <p class="note">Loading…</p>;
  if (agents.length > 0) return null;
  return (
    <p class="note">
      The server hosts no agents. Add one to <code>agents/</code>. Without <code>--watch</code>, restart the server.
    </p>
  );
}

/** Statistics of the agent's runs. */
export function AgentStatistics({ agent: { status } }: { agent: AgentManifest }) {
  const { success_rate, avg_run_tokens, avg_run_time_seconds } = status ?? {};
  if (success_rate === undefined && avg_run_time_seconds === undefined) return <span class="figures">no runs yet</span>;
  return (
    <span class="figures">
      {success_rate !== undefined && <span data-good={success_rate >= 90}>{formatNumber(success_rate)}% ok</span>}
      {avg_run_tokens !== undefined && (
        <span title="Tokens of a run on average; parts, where the agent reports no tokens">
          {formatNumber(avg_run_tokens)} {avg_run_tokens === 1 ? 'token' : 'tokens'}
        </span>
      )}
      {avg_run_time_seconds !== undefined && <span>{formatDuration(avg_run_time_seconds * 1000)}</span>}
    </span>
  );
}
