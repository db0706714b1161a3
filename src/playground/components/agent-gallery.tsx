import type { AgentManifest } from '../../client/client.ts';
import { usePlayground } from '../playground.ts';
import { promptsOf } from '../sample-prompts.ts';
import { AgentStatistics, NoAgents } from './agent-list.tsx';
import { SessionList } from './session-list.tsx';

/** The agents as cards, each with prompts to try it with. The page begins here. */
export function AgentGallery() {
  const { catalog } = usePlayground();
  const agents = catalog.agents.value;
  return (
    <section class="page" aria-labelledby="gallery-title">
      <h2 id="gallery-title">Choose an agent</h2>
      <p class="note">Send it messages, watch its events live, and copy each request as code.</p>
      <NoAgents agents={agents} />
      <ul class="gallery">
        {agents?.map((agent) => (
          <Card key={agent.name} agent={agent} />
        ))}
      </ul>
      <div class="narrow-only">
        <SessionList />
      </div>
    </section>
  );
}

function Card({ agent }: { agent: AgentManifest }) {
  const { router } = usePlayground();
  const { name, description, metadata } = agent;
  const place = { agent: name, session: undefined, run: undefined, view: 'chat' } as const;
  const { agent: selected } = router.route.value;
  const prompts = promptsOf(agent);
  return (
    <li class="agent-card">
      <a class="card" href={router.href(place)} aria-current={name === selected ? 'true' : undefined}>
        <strong>{name}</strong> <span class="description">{description}</span>
      </a>
      {prompts.length > 0 && (
        <ul class="prompts" aria-label={`Prompts for ${name}`}>
          {prompts.map(({ title, prompt }, index) => (
            <li key={`${index}`}>
              <a href={router.href({ ...place, prompt })}>{title}</a>
            </li>
          ))}
        </ul>
      )}
      <footer>
        {metadata?.tags?.map((tag) => (
          <span key={tag} class="tag">
            {tag}
          </span>
        ))}
        <AgentStatistics agent={agent} />
      </footer>
    </li>
  );
}
