import type { AgentManifest } from '../../client/client.ts';
import { formatDuration, formatNumber } from '../format.ts';
import { usePlayground } from '../playground.ts';

export function AgentList() {
  const { catalog, router } = usePlayground();
  const agents = catalog.agents.value;
  const { agent: selected } = router.route.value;
  return (
    <section aria-labelledby="agents-title">
      <h2 id="agents-title">Agents</h2>
      {agents === undefined && <p class="note">Loading…</p>}
      {agents?.length === 0 && (
        <p class="note">
          The server hosts no agents. Add one to <code>agents/</code> and restart it.
        </p>
      )}
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
              <Statistics agent={agent} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Statistics of the agent's runs. */
function Statistics({ agent: { status } }: { agent: AgentManifest }) {
  const { success_rate, avg_run_tokens, avg_run_time_seconds } = status ?? {};
  if (success_rate === undefined && avg_run_time_seconds === undefined) return <span class="figures">no runs yet</span>;
  return (
    <span class="figures">
      {success_rate !== undefined && <span data-good={success_rate >= 90}>{formatNumber(success_rate)}% ok</span>}
      {avg_run_tokens !== undefined && (
        <span>
          {formatNumber(avg_run_tokens)} {avg_run_tokens === 1 ? 'token' : 'tokens'}
        </span>
      )}
      {avg_run_time_seconds !== undefined && <span>{formatDuration(avg_run_time_seconds * 1000)}</span>}
    </span>
  );
}
