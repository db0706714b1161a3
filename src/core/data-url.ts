import type { MessagePart } from '../schema/message.ts';
import { fail } from './errors.ts';
import { isBase64 } from './messages.ts';

/** The three pieces of a `data:` URL (RFC 2397). */
export interface DataUrl {
  /** Without parameters; empty where the URL names none. */
  readonly mediaType: string;
  /** Whether the content is base64. Otherwise it is percent-encoded text. */
  readonly isBase64: boolean;
  /** As it is in the URL. */
  readonly content: string;
}

/** Splits a `data:` URL; undefined for any other address. */
export function parseDataUrl(url: string): DataUrl | undefined {
  // The content may have megabytes, so only the begin is searched.
  const [head, mediaType = '', parameters = ''] = /^data:([^,;]*)((?:;[^,;]*)*),/i.exec(url.slice(0, 1_000)) ?? [];
  if (head === undefined) return undefined;
  return { mediaType, isBase64: /;base64$/i.test(parameters), content: url.slice(head.length) };
}

/** The content of a `data:` URL as a part of a message. @throws RivuletError `validation_failed`, which names `path` */
export function partOfDataUrl({ mediaType, isBase64: isEncoded, content }: DataUrl, path: string): MessagePart {
  if (isEncoded) {
    if (!isBase64(content)) throw fail('validation_failed', path, 'expected a data URL whose content is base64');
    return { content_type: mediaType || 'application/octet-stream', content_encoding: 'base64', content };
  }
  try {
    return { content_type: mediaType || 'text/plain', content: decodeURIComponent(content) };
  } catch {
    throw fail('validation_failed', path, 'expected a data URL whose text is percent-encoded');
  }
}
