import { useEffect, useMemo, useState } from 'preact/hooks';
import type { MessagePart } from '../../client/client.ts';
import { readJson } from '../../core/json.ts';
import { Icon, ScrollBox } from '../elements/controls.tsx';
import { formatBytes } from '../elements/format.ts';
import { JsonView } from '../elements/json-view.tsx';

/** Characters of a text that the page shows. */
const maxPreview = 4_000;

export interface Artifact {
  readonly name: string;
  readonly type: string;
  /**
   * Bytes for a download; undefined if the content is elsewhere. Their type is one that browsers do not display: an HTML
   * page or SVG opened from here would run scripts with this server's origin.
   */
  readonly bytes: Blob | undefined;
  /** The URL of content elsewhere, if it is http or https. */
  readonly url: string | undefined;
  /** The source of an <img>, which runs no scripts. Undefined if it is not an image, or on another host. */
  readonly image: string | undefined;
  /** The beginning of a text artifact. */
  readonly text: string | undefined;
  /** The value of JSON that is valid. */
  readonly json: { readonly value: unknown } | undefined;
}

const safeProtocol = /^https?:$/;
const imageType = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)(?=;|$)/i;

export function artifactOf(part: MessagePart): Artifact {
  const { content, content_type: type = 'text/plain', content_url } = part;
  const url =
    content_url !== undefined && URL.canParse(content_url, location.href)
      ? new URL(content_url, location.href)
      : undefined;
  const bytes = content === undefined ? undefined : bytesOf(part);
  const readable = part.content_encoding !== 'base64' && /^(text\/|application\/(.*\+)?(json|xml|yaml))/i.test(type);
  return {
    name: part.name ?? url?.pathname.split('/').at(-1) ?? `${type.split(/[;+]/, 1)[0]?.replace('/', '.')}`,
    type,
    bytes: bytes === undefined ? undefined : new Blob([bytes], { type: 'application/octet-stream' }),
    url: url !== undefined && safeProtocol.test(url.protocol) ? url.href : undefined,
    image: imageOf(part, type, url),
    text: readable ? (content ?? '').slice(0, maxPreview) : undefined,
    json: readable && /json/i.test(type) && content !== undefined ? readJson(content) : undefined,
  };
}

function imageOf({ content, content_encoding }: MessagePart, type: string, url: URL | undefined): string | undefined {
  const [known] = imageType.exec(type) ?? [];
  if (known === undefined) return undefined;
  if (content === undefined) return url?.origin === location.origin ? url.href : undefined;
  return content_encoding === 'base64'
    ? `data:${known};base64,${content}`
    : `data:${known},${encodeURIComponent(content.replace(/\p{Cs}/gu, '\ufffd'))}`;
}

export function bytesOf({ content = '', content_encoding }: MessagePart): Uint8Array<ArrayBuffer> | string {
  if (content_encoding !== 'base64') return content;
  try {
    return Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
  } catch {
    return content;
  }
}

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
      <figcaption class="row">
        <Icon name="file" />
        <strong>{name}</strong>
        <span>
          {type}
          {bytes !== undefined && `, ${formatBytes(bytes.size)}`}
        </span>
        {blobUrl !== undefined && (
          <a class="row" href={blobUrl} download={name} aria-label={`Save ${name}`}>
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
