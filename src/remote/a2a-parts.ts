import { Buffer, isUtf8 } from 'node:buffer';
import type { Message as A2aMessage, Part } from '@a2a-js/sdk';
import { isObject, parsed } from '../core/json.ts';
import { isJsonType, isTextType } from '../core/media-types.ts';
import { citationFrom, json, textOf, trajectory } from '../core/parts.ts';
import { extension } from '../schema/a2a-extension.ts';
import type { ErrorBody } from '../schema/error.ts';
import type { GenericEvent } from '../schema/event.ts';
import type { FinishReason, MessagePart } from '../schema/message.ts';
import type { AwaitRequest } from '../schema/run.ts';

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
  if (isJsonType(part) && content_encoding !== 'base64') {
    return [{ content: { $case: 'data', value: parsed(content) }, ...rest }];
  }
  const value = Buffer.from(content, content_encoding === 'base64' ? 'base64' : 'utf8');
  // Bytes of another encoding would be changed by a text.
  if (isTextType(part) && isUtf8(value)) return [{ content: { $case: 'text', value: textOf(part) }, ...rest }];
  return [{ content: { $case: 'raw', value }, ...rest }];
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

type Metadata = Readonly<Record<string, unknown>> | undefined;

const under = (metadata: Metadata, key: keyof typeof extension): Record<string, unknown> | undefined => {
  const value = metadata?.[extension[key]];
  return isObject(value) ? value : undefined;
};

export function cursorIn(metadata: Metadata): string | undefined {
  const value = metadata?.[extension.cursor];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Why the message of an artifact is not whole; undefined where it is. */
export function finishReasonIn(metadata: Metadata): FinishReason | undefined {
  if (metadata?.[extension.interrupted] === true) return 'interrupted';
  const reason = metadata?.[extension.cutOff];
  return reason === 'length' || reason === 'content_filter' ? reason : undefined;
}

/** What a question has beside its message. */
export function questionIn(metadata: Metadata): Partial<AwaitRequest> {
  const { schema, expiresAt, tool } = under(metadata, 'question') ?? {};
  return {
    ...(isObject(schema) && { schema }),
    ...(typeof expiresAt === 'string' && { expires_at: expiresAt }),
    ...(isObject(tool) && typeof tool.name === 'string' && { tool: { ...tool, name: tool.name } }),
  };
}

function citationIn(metadata: Metadata): MessagePart['metadata'] {
  const found = under(metadata, 'citation');
  if (found === undefined) return undefined;
  return citationFrom({ ...found, start_index: found.startIndex, end_index: found.endIndex }).metadata;
}

/** A step of the remote agent, or its progress; a step with the text alone on other servers. */
export function stepIn(metadata: Metadata, text: string): MessagePart | GenericEvent {
  const step = under(metadata, 'step');
  if (step === undefined) return trajectory({ message: text });
  if (step.kind === 'progress') return { type: 'generic', generic: { ...step, kind: 'progress' } };
  const { message, toolName, toolInput, toolOutput, toolError, toolCallId } = step;
  return trajectory({
    ...(typeof message === 'string' && { message }),
    ...(typeof toolName === 'string' && { tool_name: toolName }),
    ...(isObject(toolInput) && { tool_input: toolInput }),
    ...(isObject(toolOutput) && { tool_output: toolOutput }),
    ...(typeof toolError === 'string' && { tool_error: toolError }),
    ...(typeof toolCallId === 'string' && { tool_call_id: toolCallId }),
  });
}

/** The code and the data of the error of a Rivulet run. */
export function errorIn(metadata: Metadata): Omit<ErrorBody, 'message'> | undefined {
  const { code, data } = under(metadata, 'error') ?? {};
  if (code !== 'server_error' && code !== 'invalid_input' && code !== 'not_found') return undefined;
  return { code, ...(isObject(data) && { data }) };
}
