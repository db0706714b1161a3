import type { AgentManifest } from '../../client/client.ts';
import { count, duration } from '../measures.ts';
import { usePlayground } from '../playground.ts';

export function AgentList() {
  const { catalog, places } = usePlayground();
  const agents = catalog.agents.value;
  const { agent: chosen } = places.now.value;
  return (
    <section aria-labelledby="agents-title">
      <h2 id="agents-title">Agents</h2>
      {agents === undefined && <p class="hint">Asking the server…</p>}
      {agents?.length === 0 && (
        <p class="hint">
          No agent is hosted yet. Put one into <code>agents/</code> and start again.
        </p>
      )}
      <ul class="cards">
        {agents?.map((agent) => (
          <li key={agent.name}>
            <a
              class="card"
              href={places.href({ agent: agent.name, session: undefined, run: undefined, view: 'chat' })}
              aria-current={agent.name === chosen ? 'true' : undefined}
            >
              <strong>{agent.name}</strong>
              <span class="description">{agent.description}</span>
              <Figures agent={agent} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What the agent's runs were like so far. */
function Figures({ agent: { status } }: { agent: AgentManifest }) {
  const { success_rate, avg_run_tokens, avg_run_time_seconds } = status ?? {};
  if (success_rate === undefined && avg_run_time_seconds === undefined) return <span class="figures">no run yet</span>;
  return (
    <span class="figures">
      {success_rate !== undefined && <span data-good={success_rate >= 90}>{count(success_rate)}% ok</span>}
      {avg_run_tokens !== undefined && (
        <span>
          {count(avg_run_tokens)} {avg_run_tokens === 1 ? 'token' : 'tokens'}
        </span>
      )}
      {avg_run_time_seconds !== undefined && <span>{duration(avg_run_time_seconds * 1000)}</span>}
    </span>
  );
}
