import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import { AgentError, errorOf } from '../core/errors.ts';
import { cut, isObject } from '../core/json.ts';
import { isProse } from '../core/media-types.ts';
import { json } from '../core/parts.ts';
import type { MessagePart } from '../schema/message.ts';

/** What a tool returned, as the journal of a durable run has it. */
export interface ToolResult {
  readonly parts: MessagePart[];
  /** Its structured content, or its text. */
  readonly output: Record<string, unknown>;
  /** The text of a result that is an error. */
  readonly error?: string;
}

export function resultOf({ content = [], structuredContent, isError }: CallToolResult): ToolResult {
  const texts = content.flatMap((block) => (block.type === 'text' ? block.text : []));
  const structured = isObject(structuredContent) ? structuredContent : undefined;
  const text = texts.join('\n');
  // Servers repeat structured content as text, for clients that do not know it.
  const blocks = structured === undefined ? content : content.filter((block) => !isCopy(block, structured));
  return {
    parts: [...blocks.flatMap(partOf).map(onItsLine), ...(structured === undefined ? [] : [json(structured)])],
    output: structured ?? { text },
    ...(isError === true && { error: text || 'The tool failed and did not say why.' }),
  };
}

/** A block of text after another one: as parts of a message they would be one word. */
const onItsLine = (part: MessagePart, index: number, parts: readonly MessagePart[]): MessagePart =>
  isProse(part) && index > 0 && isProse(parts[index - 1] ?? part) ? { ...part, content: `\n${part.content}` } : part;

function isCopy(block: ContentBlock, structured: object): boolean {
  if (block.type !== 'text') return false;
  try {
    return JSON.stringify(JSON.parse(block.text)) === JSON.stringify(structured);
  } catch {
    return false;
  }
}

function partOf(block: ContentBlock): MessagePart[] {
  switch (block.type) {
    case 'text':
      return [{ content_type: 'text/plain', content: block.text }];
    case 'image':
    case 'audio':
      return [{ content_type: block.mimeType, content: block.data, content_encoding: 'base64' }];
    case 'resource_link': {
      const { name, uri, mimeType = 'application/octet-stream' } = block;
      return [{ name, content_type: mimeType, content_url: uri }];
    }
    case 'resource': {
      const { resource } = block;
      const { uri, mimeType } = resource;
      if ('text' in resource) return [{ name: uri, content_type: mimeType ?? 'text/plain', content: resource.text }];
      const content_type = mimeType ?? 'application/octet-stream';
      return [{ name: uri, content_type, content: resource.blob, content_encoding: 'base64' }];
    }
    default:
      return [];
  }
}

// What the failure of a call means: whether it was made, and what the agent is told.

/** Characters of what a server says of a refusal. */
const maxMessage = 2_000;
/** Errors of the SDK about an answer that came, and that it does not understand. */
const unreadable = new Set<unknown>(['INVALID_RESULT', 'UNSUPPORTED_RESULT_TYPE', 'CLIENT_HTTP_UNEXPECTED_CONTENT']);

/** A call that may have been made, and has no result. `cause`: what cut it off. */
export function unknownOutcome(tool: string, cause: string): AgentError {
  const problem = `was cut off by ${cause}, and may or may not have taken effect; check that before you call it again`;
  return new AgentError('tool_call_unknown', `The call of the tool ${tool} ${problem}.`);
}

/** The error of a call that failed; `sent` where it was handed to the connection. */
export function failureOf(tool: string, error: unknown, sent: boolean): AgentError {
  const code = fieldOf(error, 'code');
  // The code of a JSON-RPC error is a number: the server has refused the call.
  if (typeof code === 'number') return new AgentError('tool_refused', cut(errorOf(error).message, maxMessage));
  const status = fieldOf(error, 'status');
  if (sent && code === 'REQUEST_TIMEOUT') return new AgentError('tool_timeout', `The tool ${tool} took too long.`);
  if (sent && mayHaveArrived(error)) return unknownOutcome(tool, causeOf(error, code, status));
  const problem = typeof status === 'number' ? `refuses to serve it: HTTP status ${status}` : 'does not answer';
  return new AgentError('tool_unreachable', `The server of the tool ${tool} ${problem}.`);
}

/**
 * Whether the server may have begun a call that failed: the connection was made, and it has not refused the request. An
 * error of the server, or of a gateway before it, may come after the call.
 */
function mayHaveArrived(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  const status = fieldOf(error, 'status');
  if (typeof status === 'number' && status < 500) return false;
  if (/^(connect|getaddrinfo)$/.test(String(fieldOf(error, 'syscall')))) return false;
  return error.cause === undefined || mayHaveArrived(error.cause);
}

function causeOf(error: unknown, code: unknown, status: unknown): string {
  if (typeof status === 'number') return `HTTP status ${status}`;
  const isUnreadable = error instanceof SyntaxError || fieldOf(error, 'name') === 'ZodError' || unreadable.has(code);
  return isUnreadable ? "an answer that is no tool's result" : 'a broken connection';
}

const fieldOf = (error: unknown, name: string): unknown =>
  error instanceof Error ? Reflect.get(error, name) : undefined;
