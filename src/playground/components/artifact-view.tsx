import { useEffect, useMemo, useState } from 'preact/hooks';
import type { MessagePart } from '../../client/client.ts';
import { artifactOf } from '../artifact.ts';
import { formatBytes } from '../format.ts';
import { Icon } from './icons.tsx';
import { JsonView } from './json-view.tsx';
import { ScrollBox } from './scroll-box.tsx';

/** An artifact: images, text and JSON are shown, files can be saved, content elsewhere is linked. */
export function ArtifactView({ part }: { part: MessagePart }) {
  const { name, type, bytes, url, image, text, json } = useMemo(() => artifactOf(part), [part]);
  const [blobUrl, setBlobUrl] = useState<string>();
  useEffect(() => {
    if (bytes === undefined) return;
    const created = URL.createObjectURL(bytes);
    setBlobUrl(created);
    return () => URL.revokeObjectURL(created);
  }, [bytes]);
  return (
    <figure class="artifact">
      {image !== undefined && <img src={image} alt={name} />}
      {json !== undefined && <JsonView label={name} value={json.value} />}
      {json === undefined && text !== undefined && text !== '' && (
        <ScrollBox class="code" label={name}>
          <pre>{text}</pre>
        </ScrollBox>
      )}
      <figcaption>
        <Icon name="file" />
        <strong>{name}</strong>
        <span>
          {type}
          {bytes !== undefined && `, ${formatBytes(bytes.size)}`}
        </span>
        {blobUrl !== undefined && (
          <a href={blobUrl} download={name} aria-label={`Save ${name}`}>
            <Icon name="down" />
            Save
          </a>
        )}
        {blobUrl === undefined && url !== undefined && (
          <a href={url} target="_blank" rel="noopener noreferrer">
            Open at {new URL(url).host}
          </a>
        )}
      </figcaption>
    </figure>
  );
}
