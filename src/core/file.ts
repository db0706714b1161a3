import mime from 'mime/lite';
import type { MessagePart } from '../schema/message.ts';
import { artifact } from './parts.ts';

/** Types that no text has, such as the `video/mp2t` that lists of types have for `.ts`. */
const isBinary = /^(audio|font|video|image(?!\/svg))\//;

/**
 * An artifact: a part with a name. Bytes that are UTF-8 become text, others base64. Without a `content_type` it has the
 * type of its name: `text/csv` for `sales.csv`. Where the name has no known end, it is `text/plain` or
 * `application/octet-stream`.
 */
export function file(name: string, content: string | Uint8Array, content_type?: string): MessagePart {
  const part = artifact(name, content, content_type);
  if (content_type !== undefined) return part;
  const type = mime.getType(name);
  const isText = part.content_encoding === undefined;
  return type === null || (isText && isBinary.test(type)) ? part : { ...part, content_type: type };
}
