import { textOf } from '../../core/parts.ts';
import type { Message, MessagePart } from '../../schema/message.ts';
import { kindOf } from '../projector.ts';

/** A message of the input of a run that was made in another protocol. Only a user's message may have files. */
export function clientMessage({ role, parts }: Message, index: number, modern: boolean) {
  const isUser = role === 'user';
  const hasFiles = isUser && parts.some((part) => kindOf(part).kind !== 'text');
  return {
    id: `input.${index}`,
    role: isUser ? 'user' : 'assistant',
    content: hasFiles ? parts.map((part) => inputPart(part, modern)) : textOf({ parts }),
  };
}

/** A part as the request of a client has it: the inverse of `partOf` in `input-messages.ts`. */
function inputPart(part: MessagePart, modern: boolean): object {
  const known = kindOf(part);
  if (known.kind !== 'file') return { type: 'text', text: known.kind === 'text' ? known.text : (part.content ?? '') };
  const { url, mediaType: mimeType, name } = known;
  const named = name !== undefined && { filename: name };
  const data = /^data:[^,]*;base64,/.exec(url)?.[0];
  const value = data === undefined ? url : url.slice(data.length);
  if (!modern) return { type: 'binary', mimeType, ...(data === undefined ? { url } : { data: value }), ...named };
  const [kind = ''] = mimeType.split('/', 1);
  const type = ['image', 'audio', 'video'].includes(kind) ? kind : 'document';
  return {
    type,
    source: { type: data === undefined ? 'url' : 'data', value, mimeType },
    ...(named && { metadata: named }),
  };
}
