import type { MessagePart } from '../schema/message.ts';

type Typed = Pick<MessagePart, 'content_type'>;

// A part without a type is plain text. Each is a function of its own, so that a page bundles only those that it uses.

/** Whether the media type of a part is text of any kind. */
export const isTextType = ({ content_type = 'text/plain' }: Typed): boolean => /^text\//i.test(content_type);
const isPlainType = ({ content_type = 'text/plain' }: Typed): boolean => /^text\/plain\b/i.test(content_type);
export const isJsonType = ({ content_type = '' }: Typed): boolean =>
  /^application\/([\w.-]+\+)?json\b/i.test(content_type);

/** Whether the content of a part is text of any kind, which can be read as it is. */
export const isText = (part: MessagePart): part is MessagePart & { content: string } =>
  part.content !== undefined && part.content_encoding !== 'base64' && isTextType(part);

/** Whether a part is prose of its message: plain text without a name. A part with a name is an artifact. */
export const isProse = (part: MessagePart): boolean =>
  !part.name && part.content_url === undefined && isPlainType(part);

/** Whether a part has nothing but plain text, as a token has. Such parts are joined where one follows another. */
export function isPlainText(part: MessagePart): part is MessagePart & { content: string } {
  if (typeof part.content !== 'string') return false;
  for (const key in part) {
    if (key === 'content') continue;
    if (key === 'content_type' && part.content_type === 'text/plain') continue;
    if (key === 'content_encoding' && part.content_encoding === 'plain') continue;
    return false;
  }
  return true;
}

const essence = (type: string): string => (type.split(';', 1)[0] ?? '').trim().toLowerCase();

/** Whether a media type is covered by a range such as `text/*`, `*` or `application/json`. */
export function covers(range: string, type: string): boolean {
  const wanted = essence(range);
  if (wanted === '*/*' || wanted === '*') return true;
  const got = essence(type);
  return wanted.endsWith('/*') ? got.startsWith(wanted.slice(0, -1)) : got === wanted;
}
