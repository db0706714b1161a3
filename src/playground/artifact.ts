import type { MessagePart } from '../client/client.ts';

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
    json: readable && /json/i.test(type) && content !== undefined ? parsed(content) : undefined,
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

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
