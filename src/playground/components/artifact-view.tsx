import { useEffect, useMemo, useState } from 'preact/hooks';
import type { MessagePart } from '../../client/client.ts';
import { artifactOf } from '../artifact.ts';
import { size } from '../measures.ts';
import { Icon } from './icons.tsx';
import { ScrollBox } from './scroll-box.tsx';

/** A thing that is no text of the conversation: a picture is shown, a file can be saved, what is elsewhere is linked. */
export function ArtifactView({ part }: { part: MessagePart }) {
  const { name, type, bytes, url, picture, text } = useMemo(() => artifactOf(part), [part]);
  const [blob, setBlob] = useState<string>();
  useEffect(() => {
    if (bytes === undefined) return;
    const made = URL.createObjectURL(bytes);
    setBlob(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes]);
  return (
    <figure class="artifact">
      {picture !== undefined && <img src={picture} alt={name} />}
      {text !== undefined && text !== '' && (
        <ScrollBox class="code" label={name}>
          <pre>{text}</pre>
        </ScrollBox>
      )}
      <figcaption>
        <Icon name="file" />
        <strong>{name}</strong>
        <span>
          {type}
          {bytes !== undefined && `, ${size(bytes.size)}`}
        </span>
        {blob !== undefined && (
          <a href={blob} download={name} aria-label={`Save ${name}`}>
            <Icon name="down" />
            Save
          </a>
        )}
        {blob === undefined && url !== undefined && (
          <a href={url} target="_blank" rel="noopener noreferrer">
            Open at {new URL(url).host}
          </a>
        )}
      </figcaption>
    </figure>
  );
}
