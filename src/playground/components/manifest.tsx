import type { AgentManifest } from '../../client/client.ts';

/** What an agent says of itself. */
export function Manifest({ agent, open }: { agent: AgentManifest; open: boolean }) {
  const { metadata = {} } = agent;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Takes', agent.input_content_types.join(', ')],
    ['Gives', agent.output_content_types.join(', ')],
    ['Can', metadata.capabilities?.map(({ name }) => name).join(', ')],
    ['Domains', metadata.domains?.join(', ')],
    ['Languages', metadata.natural_languages?.join(', ')],
    ['Models', metadata.recommended_models?.join(', ')],
    ['Needs', metadata.dependencies?.map(({ name }) => name).join(', ')],
    ['Author', metadata.author?.name],
    ['License', metadata.license],
    ['Tags', metadata.tags?.join(', ')],
  ];
  return (
    <details class="manifest" open={open}>
      <summary>
        <strong>{agent.name}</strong>
        <span>{agent.description}</span>
      </summary>
      <dl>
        {facts.map(([term, fact]) =>
          fact === undefined || fact === '' ? null : (
            <div key={term}>
              <dt>{term}</dt>
              <dd>{fact}</dd>
            </div>
          ),
        )}
      </dl>
    </details>
  );
}
