import type { AgentManifest } from '../../client/client.ts';
import { Facts } from '../elements/controls.tsx';

/** A list in one line; undefined for none. */
const joined = (texts: readonly string[] | undefined): string | undefined => texts?.join(', ') || undefined;

const namesIn = (named: readonly { readonly name: string }[] | undefined): string | undefined =>
  joined(named?.map(({ name }) => name));

/** What an agent's manifest says of it. */
export function ManifestView({ manifest, open }: { manifest: AgentManifest; open: boolean }) {
  const { metadata = {} } = manifest;
  return (
    <details class="manifest" open={open}>
      <summary class="row">
        <strong>{manifest.name}</strong>
        <span class="note">{manifest.description}</span>
      </summary>
      <Facts
        facts={[
          ['Input', joined(manifest.input_content_types)],
          ['Output', joined(manifest.output_content_types)],
          ['Capabilities', namesIn(metadata.capabilities)],
          ['Domains', joined(metadata.domains)],
          ['Languages', joined(metadata.natural_languages)],
          ['Models', joined(metadata.recommended_models)],
          ['Dependencies', namesIn(metadata.dependencies)],
          ['Author', metadata.author?.name || undefined],
          ['License', metadata.license || undefined],
          ['Tags', joined(metadata.tags)],
        ]}
      />
    </details>
  );
}
