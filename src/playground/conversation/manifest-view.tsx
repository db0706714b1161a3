import type { AgentManifest } from '../../client/client.ts';

/** What an agent's manifest says of it. */
export function ManifestView({ manifest, open }: { manifest: AgentManifest; open: boolean }) {
  const { metadata = {} } = manifest;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Input', manifest.input_content_types.join(', ')],
    ['Output', manifest.output_content_types.join(', ')],
    ['Capabilities', metadata.capabilities?.map(({ name }) => name).join(', ')],
    ['Domains', metadata.domains?.join(', ')],
    ['Languages', metadata.natural_languages?.join(', ')],
    ['Models', metadata.recommended_models?.join(', ')],
    ['Dependencies', metadata.dependencies?.map(({ name }) => name).join(', ')],
    ['Author', metadata.author?.name],
    ['License', metadata.license],
    ['Tags', metadata.tags?.join(', ')],
  ];
  return (
    <details class="manifest" open={open}>
      <summary class="row">
        <strong>{manifest.name}</strong>
        <span class="note">{manifest.description}</span>
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
