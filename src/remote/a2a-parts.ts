import { Buffer, isUtf8 } from 'node:buffer';
import type { Message as A2aMessage, Part } from '@a2a-js/sdk';
import { json, textOf } from '../core/parts.ts';
import type { MessagePart } from '../schema/message.ts';
import { citationIn } from './a2a-extension.ts';

/** `Role.ROLE_USER`: the enum is a value of the SDK, which is loaded later. */
const roleUser: A2aMessage['role'] = 1;

/** A message of the user. */
export const messageFor = (messageId: string, parts: readonly MessagePart[]): A2aMessage => ({
  messageId,
  contextId: '',
  taskId: '',
  role: roleUser,
  parts: parts.flatMap(toA2aPart),
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});

/** Citations and steps are of no use to another agent. */
function toA2aPart(part: MessagePart): Part[] {
  const { name = '', content = '', content_type: mediaType = 'text/plain', content_encoding, content_url } = part;
  if (part.metadata !== undefined) return [];
  const rest = { metadata: undefined, filename: name, mediaType };
  if (content_url !== undefined) return [{ content: { $case: 'url', value: content_url }, ...rest }];
  if (/^application\/json\b/i.test(mediaType) && content_encoding !== 'base64') {
    return [{ content: { $case: 'data', value: parsed(content) }, ...rest }];
  }
  const value = Buffer.from(content, content_encoding === 'base64' ? 'base64' : 'utf8');
  // Bytes of another encoding would be changed by a text.
  if (/^text\//i.test(mediaType) && isUtf8(value))
    return [{ content: { $case: 'text', value: textOf(part) }, ...rest }];
  return [{ content: { $case: 'raw', value }, ...rest }];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The parts of a message or an artifact, without empty ones: some servers close an artifact with an empty text. */
export const partsOf = (parts: readonly Part[]): MessagePart[] =>
  parts
    .flatMap((part) => fromA2aPart(part) ?? [])
    .filter(({ content, metadata }) => content !== '' || metadata !== undefined);

function fromA2aPart({ content, filename, mediaType, metadata }: Part): MessagePart | undefined {
  const shown = citationIn(metadata);
  const rest = { ...(filename && { name: filename }), ...(shown && { metadata: shown }) };
  switch (content?.$case) {
    case 'text':
      return {
        content_type: typeOr(mediaType, 'text/plain'),
        ...((content.value !== '' || shown === undefined) && { content: content.value }),
        ...rest,
      };
    case 'data':
      return { ...json(content.value ?? null), ...rest };
    case 'url':
      return { content_type: typeOr(mediaType, 'application/octet-stream'), content_url: content.value, ...rest };
    case 'raw': {
      const base64 = Buffer.from(content.value).toString('base64');
      const content_type = typeOr(mediaType, 'application/octet-stream');
      return { content_type, content: base64, content_encoding: 'base64', ...rest };
    }
    default:
      return undefined;
  }
}

/** A media type; servers also write words such as `text`. */
const typeOr = (given: string, otherwise: string): string => (/^[^/\s]+\/[^/\s]+/.test(given) ? given : otherwise);
