import type { MessagePart } from '../client/client.ts';

/** Characters of a text that are shown in the page. */
const preview = 4_000;

export interface Artifact {
  readonly name: string;
  readonly type: string;
  /**
   * Bytes to be saved; undefined where they are elsewhere. They have no type that a browser shows: a page, or an SVG,
   * that were opened from here would run as one of this server's.
   */
  readonly bytes: Blob | undefined;
  /** Where it is, if it is elsewhere, and its address is one that may be opened. */
  readonly url: string | undefined;
  /** What an <img> shows: in there, scripts do not run. Undefined where it is no picture, or another host has it. */
  readonly picture: string | undefined;
  /** What can be read of it in the page. */
  readonly text: string | undefined;
}

const safe = /^https?:$/;
const pictureType = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)(?=;|$)/i;

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
    url: url !== undefined && safe.test(url.protocol) ? url.href : undefined,
    picture: pictureOf(part, type, url),
    text: readable ? pretty(content ?? '', type).slice(0, preview) : undefined,
  };
}

function pictureOf({ content, content_encoding }: MessagePart, type: string, url: URL | undefined): string | undefined {
  const [known] = pictureType.exec(type) ?? [];
  if (known === undefined) return undefined;
  if (content === undefined) return url?.origin === location.origin ? url.href : undefined;
  return content_encoding === 'base64'
    ? `data:${known};base64,${content}`
    : `data:${known},${encodeURIComponent(content.replace(/\p{Cs}/gu, '\ufffd'))}`;
}

function bytesOf({ content = '', content_encoding }: MessagePart): Uint8Array<ArrayBuffer> | string {
  if (content_encoding !== 'base64') return content;
  try {
    return Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
  } catch {
    return content;
  }
}

function pretty(text: string, type: string): string {
  if (!/json/i.test(type)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
