import { isUtf8 } from 'node:buffer';
import mime from 'mime/lite';
import { fail } from '../../core/errors.ts';
import { isJsonType, isTextType } from '../../core/media-types.ts';
import { extension } from '../../schema/a2a-extension.ts';
import type { CitationMetadata, MessagePart, TrajectoryMetadata } from '../../schema/message.ts';
import { jsonIn } from '../part-kinds.ts';
import type { Part, SendMessageRequest } from './request.ts';

// Parts and messages, from A2A's words to this server's and back.

/** A part as clients read it: exactly one of the first four fields. */
export interface TaskPart {
  readonly text?: string;
  readonly raw?: string;
  readonly url?: string;
  readonly data?: unknown;
  readonly mediaType?: string;
  readonly filename?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface TaskMessage {
  readonly messageId: string;
  readonly contextId: string;
  readonly taskId: string;
  readonly role: 'ROLE_USER' | 'ROLE_AGENT';
  readonly parts: readonly TaskPart[];
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** What a client has said of a part beside its content. The `metadata` of a part has another meaning here. */
type GivenPart = MessagePart & { client_metadata?: unknown };

export interface InputMessage {
  readonly id: string;
  readonly role: 'user';
  readonly parts: MessagePart[];
}

/** A message of a client as the agent's input; it keeps its id. */
export const inputOf = ({ messageId, parts }: SendMessageRequest['message']): InputMessage => ({
  id: messageId,
  role: 'user',
  parts: parts.map((part, index) => inputPartOf(part, `message.parts[${index}]`)),
});

const kinds = ['text', 'raw', 'url', 'data'] as const;

function inputPartOf(part: Part, path: string): GivenPart {
  const given = kinds.filter((kind) => part[kind] !== undefined);
  if (given.length !== 1) {
    throw fail(
      'validation_failed',
      path,
      `expected one of text, raw, url and data; got ${given.join(' and ') || 'none'}`,
    );
  }
  const { filename = '', mediaType = '', metadata } = part;
  return {
    ...contentOf({ ...part, ...(part.raw !== undefined && { raw: base64In(part.raw, path) }) }, mediaType, filename),
    ...(filename !== '' && { name: filename }),
    client_metadata: metadata,
  };
}

function contentOf({ text, raw, url, data }: Part, mediaType: string, filename: string): MessagePart {
  if (text !== undefined) return { content_type: mediaType || 'text/plain', content: text };
  const guessed = mediaType || mime.getType(filename) || 'application/octet-stream';
  if (raw !== undefined) return { content_type: guessed, content_encoding: 'base64', content: raw };
  if (url !== undefined) return { content_type: guessed, content_url: url };
  return { content_type: mediaType || 'application/json', content: JSON.stringify(data) };
}

/** As in the JSON of Protocol Buffers: also with the characters for URLs, and without padding. */
function base64In(raw: string, path: string): string {
  // A replacement of each character would take seconds for ten megabytes, and a pattern for many `=` at the end hours.
  const [, digits] = /^([\w+/-]*)={0,2}$/.exec(raw) ?? [];
  if (digits === undefined || digits.length % 4 === 1)
    throw fail('validation_failed', `${path}.raw`, 'expected base64');
  return Buffer.from(digits, 'base64').toString('base64');
}

/** A part of a message as clients read it. */
export function taskPartOf(part: GivenPart): TaskPart {
  const { content_type = 'text/plain', name, metadata, client_metadata } = part;
  const own = metadata?.kind === 'citation' ? { [extension.citation]: citationOf(metadata) } : client_metadata;
  const content = taskContentOf(part);
  // Only a text is plain text where it has no media type.
  const isPlain = content_type === 'text/plain' && content.text !== undefined;
  return {
    ...content,
    ...(!isPlain && { mediaType: content_type }),
    ...(name !== undefined && name !== '' && { filename: name }),
    ...(typeof own === 'object' && own !== null && { metadata: { ...own } }),
  };
}

/** In the spelling of the protocol. */
const citationOf = ({ start_index, end_index, url, title, description }: CitationMetadata) => ({
  startIndex: start_index,
  endIndex: end_index,
  url,
  title,
  description,
});

/** A step of the agent, in the spelling of the protocol. */
export const stepOf = ({
  message,
  tool_name,
  tool_input,
  tool_output,
  tool_error,
  tool_call_id,
}: TrajectoryMetadata) => ({
  message,
  toolName: tool_name,
  toolInput: tool_input,
  toolOutput: tool_output,
  toolError: tool_error,
  toolCallId: tool_call_id,
});

function taskContentOf(part: MessagePart): TaskPart {
  const { content = '', content_url, content_encoding } = part;
  if (content_url !== undefined) return { url: content_url };
  if (content_encoding === 'base64') {
    const text = isTextType(part) ? utf8In(content) : undefined;
    return text === undefined ? { raw: content } : { text };
  }
  const json = isJsonType(part) ? jsonIn(content) : undefined;
  return json === undefined ? { text: content } : { data: json.value };
}

/** The text in base64; undefined for bytes of another encoding, which a text would change. */
function utf8In(content: string): string | undefined {
  const bytes = Buffer.from(content, 'base64');
  return isUtf8(bytes) ? bytes.toString() : undefined;
}
