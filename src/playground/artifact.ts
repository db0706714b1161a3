import type { MessagePart } from '../client/client.ts';

/** Characters of a text that are shown in the page. */
const preview = 4_000;

export interface Artifact {
  readonly name: string;
  readonly type: string;
  /** Bytes; undefined where they are elsewhere. */
  readonly bytes: Blob | undefined;
  /** Where it is, if it is elsewhere, and its address is one that may be opened. */
  readonly url: string | undefined;
  /** What can be read of it in the page. */
  readonly text: string | undefined;
}

const safe = /^https?:$/;

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
    bytes: bytes === undefined ? undefined : new Blob([bytes], { type: shownAs(type) }),
    url: url !== undefined && safe.test(url.protocol) ? url.href : undefined,
    text: readable ? pretty(content ?? '', type).slice(0, preview) : undefined,
  };
}

/** Whether it can be shown as a picture without asking anybody but this server. */
export const isPicture = ({ type, bytes, url }: Artifact): boolean =>
  type.startsWith('image/') && (bytes !== undefined || (url !== undefined && new URL(url).origin === location.origin));

/** Only pictures keep their type: a page that were opened from here would run as one of this server's. */
const shownAs = (type: string): string =>
  /^image\/(png|jpeg|gif|webp|avif|svg\+xml)/i.test(type) ? type : 'application/octet-stream';

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
