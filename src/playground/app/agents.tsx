import type { ComponentChildren } from 'preact';
import type { AgentManifest } from '../../client/client.ts';
import { Icon } from '../elements/controls.tsx';
import { formatDuration, formatNumber, formatTime } from '../elements/format.ts';
import { promptsOf } from './catalog.ts';
import { usePlayground } from './playground.ts';

/** The agents as cards, each with prompts to try it with. The page begins here. */
export function AgentGallery() {
  const { catalog } = usePlayground();
  return (
    <section class="page" aria-labelledby="gallery-title">
      <h2 id="gallery-title">Choose an agent</h2>
      <p class="note">Send it messages, watch its events live, and copy each request as code.</p>
      <NoAgents />
      <ul class="gallery">
        {catalog.agents.value?.map((agent) => (
          <li key={agent.name}>
            <AgentLink agent={agent} />
            <Prompts agent={agent} />
            <footer class="row">
              {agent.metadata?.tags?.map((tag) => (
                <span key={tag} class="tag">
                  {tag}
                </span>
              ))}
              <AgentStatistics agent={agent} />
            </footer>
          </li>
        ))}
      </ul>
      <div class="narrow">
        <SessionList />
      </div>
    </section>
  );
}

function Prompts({ agent }: { agent: AgentManifest }) {
  const { router } = usePlayground();
  const place = { agent: agent.name, session: undefined, run: undefined, view: 'chat' } as const;
  const prompts = promptsOf(agent);
  if (prompts.length === 0) return null;
  return (
    <ul class="prompts stack" aria-label={`Prompts for ${agent.name}`}>
      {prompts.map(({ title, prompt }, index) => (
        <li key={`${index}`}>
          <a href={router.href({ ...place, prompt })}>{title}</a>
        </li>
      ))}
    </ul>
  );
}

/** The agents beside a conversation. */
export function AgentList() {
  const { catalog } = usePlayground();
  return (
    <section aria-labelledby="agents-title">
      <h2 id="agents-title">Agents</h2>
      <NoAgents />
      <ul>
        {catalog.agents.value?.map((agent) => (
          <li key={agent.name}>
            <AgentLink agent={agent}>
              <AgentStatistics agent={agent} />
            </AgentLink>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The way to a new conversation with the agent. */
function AgentLink({ agent, children }: { agent: AgentManifest; children?: ComponentChildren }) {
  const { router } = usePlayground();
  const { name, description } = agent;
  return (
    <a
      class="card"
      href={router.href({ agent: name, session: undefined, run: undefined, view: 'chat' })}
      aria-current={name === router.route.value.agent ? 'true' : undefined}
    >
      <strong>{name}</strong> <span class="note clamp">{description}</span>
      {children}
    </a>
  );
}

/** The reason why there is nothing to list. */
function NoAgents() {
  const agents = usePlayground().catalog.agents.value;
  if (agents === undefined) return <p class="note">Loading…</p>;
  if (agents.length > 0) return null;
  return (
    <p class="note">
      The server hosts no agents. Add one to <code>agents/</code>. Without <code>--watch</code>, restart the server.
    </p>
  );
}

/** Statistics of the agent's runs. */
function AgentStatistics({ agent: { status } }: { agent: AgentManifest }) {
  const { success_rate, avg_run_tokens, avg_run_time_seconds } = status ?? {};
  if (success_rate === undefined && avg_run_time_seconds === undefined)
    return <small class="figures">no runs yet</small>;
  return (
    <small class="figures">
      {success_rate !== undefined && <span data-good={success_rate >= 90}>{formatNumber(success_rate)}% ok</span>}
      {avg_run_tokens !== undefined && (
        <span title="Tokens of a run on average; parts, where the agent reports no tokens">
          {formatNumber(avg_run_tokens)} {avg_run_tokens === 1 ? 'token' : 'tokens'}
        </span>
      )}
      {avg_run_time_seconds !== undefined && <span>{formatDuration(avg_run_time_seconds * 1000)}</span>}
    </small>
  );
}

/** The sessions with the selected agent that this browser has stored. */
export function SessionList() {
  const { storage, router } = usePlayground();
  const { agent, session } = router.route.value;
  if (agent === undefined) return null;
  const sessions = storage.list.value.filter((stored) => stored.agent === agent);
  return (
    <section aria-labelledby="sessions-title">
      <div class="row">
        <h2 id="sessions-title">Sessions</h2>
        <a class="quiet" href={router.href({ session: undefined, run: undefined, view: 'chat' })}>
          <Icon name="plus" />
          New
        </a>
      </div>
      {sessions.length === 0 && <p class="note">Your sessions with {agent} are listed here.</p>}
      <ul>
        {sessions.map(({ id, title, createdAt }) => (
          <li key={id} class="row">
            <a
              class="card"
              href={router.href({ session: id, run: undefined, view: 'chat' })}
              aria-current={id === session ? 'true' : undefined}
            >
              <span class="clip">{title}</span>
              <small>
                <time dateTime={createdAt}>{formatTime(createdAt)}</time>
              </small>
            </a>
            <button
              type="button"
              class="quiet"
              aria-label={`Remove the session ${title} from this list`}
              onClick={() => storage.remove(id)}
            >
              <Icon name="close" />
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
