import type { GenericEvent } from '../schema/event.ts';
import type {
  CitationMetadata,
  FinishReason,
  MessageInput,
  MessagePart,
  TrajectoryMetadata,
} from '../schema/message.ts';
import type { AwaitRequest } from '../schema/run.ts';
import type { AgentOutput } from './agent.ts';
import { isObject } from './json.ts';
import { isProse, isTextType } from './media-types.ts';

/** Says where a stretch of the message's text comes from. Indexes count characters over the message's text parts. */
export const citation = (source: Omit<CitationMetadata, 'kind'>): MessagePart => ({
  content_type: 'text/plain',
  metadata: { ...source, kind: 'citation' },
});

const citationFields = [
  ['start_index', 'number'],
  ['end_index', 'number'],
  ['url', 'string'],
  ['title', 'string'],
  ['description', 'string'],
] as const;

/** A citation from what a library or another server says of a source. Fields of another type are left out. */
export const citationFrom = (given: Readonly<Record<string, unknown>>): MessagePart =>
  citation(
    Object.fromEntries(
      citationFields.filter(([name, type]) => typeof given[name] === type).map(([name]) => [name, given[name]]),
    ),
  );

/** Shows a step that the agent took, such as a tool call, beside the answer. */
export const trajectory = (step: Omit<TrajectoryMetadata, 'kind'>): MessagePart => ({
  metadata: { ...step, kind: 'trajectory' },
});

/**
 * An artifact: a part with a name. Bytes that are UTF-8 become text, others base64. Without a `content_type` it is
 * `text/plain` or `application/octet-stream`.
 */
export function artifact(name: string, content: string | Uint8Array, content_type?: string): MessagePart {
  if (typeof content === 'string') return { name, content_type: content_type ?? 'text/plain', content };
  const text = decoded(content);
  if (text !== undefined) return artifact(name, text, content_type);
  const type = content_type ?? 'application/octet-stream';
  return { name, content_type: type, content_encoding: 'base64', content: base64Of(content) };
}

/** Data as a part of type `application/json`; with a name it is an artifact. */
export const json = (value: unknown, name?: string): MessagePart => ({
  ...(name !== undefined && { name }),
  content_type: 'application/json',
  content: JSON.stringify(value),
});

/**
 * Completes the open message, so that what follows is not joined with it. `finish_reason`: why the message is not whole;
 * `interrupted` where a crash cut it off, and the next message repeats it.
 */
export const endOfMessage = (finish_reason?: FinishReason): AgentOutput => ({
  role: 'agent',
  parts: [],
  ...(finish_reason && { finish_reason }),
});

/** How far the work is: an event that readers see while the run goes on. It is no part of the answer. */
export const progress = (message: string, { done, total }: { done?: number; total?: number } = {}): GenericEvent => ({
  type: 'generic',
  generic: { kind: 'progress', message, ...(done !== undefined && { done }), ...(total !== undefined && { total }) },
});

/** An operation of a JSON Patch (RFC 6902). */
export interface PatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  /** A JSON Pointer, such as `/steps/0`. */
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** The state that the agent shares with its client, as a whole: an event that replaces what the client has. */
export const sharedState = (state: unknown): GenericEvent => ({ type: 'generic', generic: { kind: 'state', state } });

/** A change of the state that the agent shares with its client: an event with a JSON Patch (RFC 6902). */
export const statePatch = (patch: readonly PatchOperation[]): GenericEvent => ({
  type: 'generic',
  generic: { kind: 'state', patch },
});

/** A change of the shared state. */
export type StateChange = { readonly state: unknown } | { readonly patch: readonly unknown[] };

/** The change that a generic event reports; undefined for other events, also of agents that use the same kind. */
export function stateChangeOf(generic: Readonly<Record<string, unknown>>): StateChange | undefined {
  const { kind, state, patch } = generic;
  if (kind !== 'state') return undefined;
  if (state !== undefined) return { state };
  return Array.isArray(patch) && patch.every(isOperation) ? { patch } : undefined;
}

/** RFC 6901. */
const isPointer = (path: unknown): boolean => typeof path === 'string' && /^(\/([^/~]|~[01])*)*$/.test(path);

/** Clients end a run at an operation that RFC 6902 does not know. */
function isOperation(operation: unknown): boolean {
  if (!isObject(operation) || !isPointer(operation.path)) return false;
  const { op, from, value } = operation;
  if (op === 'move' || op === 'copy') return isPointer(from);
  return op === 'remove' || ((op === 'add' || op === 'replace' || op === 'test') && value !== undefined);
}

/** What `textOf` takes. */
export type HasText = AgentOutput | MessageInput;

const isList = (said: HasText | readonly HasText[]): said is readonly HasText[] => Array.isArray(said);

/**
 * The text of a message, of a part, of anything that an agent emits, or of a list of these, with a blank line between
 * messages. Text in base64 is decoded; other base64, trajectories and generic events have no text.
 */
export function textOf(said: HasText | readonly HasText[]): string {
  if (isList(said)) return said.reduce<string>(appendText, '');
  if (typeof said === 'string') return said;
  // In JavaScript, or where `await` is missing before a question or a call.
  if (typeof said !== 'object' || said === null) {
    throw new TypeError(`textOf expects a message, a part, a text or a list of these, got ${said}`);
  }
  if ('generic' in said) return '';
  if ('parts' in said) return said.parts.map(textOf).join('');
  const { content = '', content_encoding, metadata } = said;
  if (metadata?.kind === 'trajectory') return '';
  if (content_encoding !== 'base64') return content;
  if (!isTextType(said)) return '';
  return new TextDecoder().decode(Uint8Array.from(atob(content), (char) => char.charCodeAt(0)));
}

/** The text of a question, as people read it: a blank line is around each part that is no plain text, such as JSON. */
export function questionText({ message }: Pick<AwaitRequest, 'message'>): string {
  let all = '';
  let before: MessagePart | undefined;
  for (const part of message.parts) {
    const text = textOf(part);
    if (text === '') continue;
    const isNext = before !== undefined && !(isProse(before) && isProse(part));
    all += isNext ? `\n\n${text}` : text;
    before = part;
  }
  return all;
}

function appendText(all: string, one: HasText): string {
  const text = textOf(one);
  const isMessage = typeof one === 'object' && 'parts' in one;
  return isMessage && all !== '' && text !== '' ? `${all}\n\n${text}` : all + text;
}

/** A call of an agent, as the events of kind `call` report it: one when it begins, one when it ends. */
export interface CallReport {
  /** The calls around it, and itself: `panel/1 optimist/1`. */
  readonly path: string;
  readonly agent: string;
  readonly state: 'began' | 'completed' | 'failed' | 'cancelled';
  /** A date-time. */
  readonly at: string;
}

/** Calls within calls. */
export const maxCallDepth = 16;

const callStates: readonly CallReport['state'][] = ['began', 'completed', 'failed', 'cancelled'];

/** The call that a generic event reports; undefined for other events, also of agents that use the same kind. */
export function callOf({ kind, path, agent, state, at }: Readonly<Record<string, unknown>>): CallReport | undefined {
  const known = callStates.find((one) => one === state);
  if (kind !== 'call' || known === undefined) return undefined;
  if (typeof path !== 'string' || typeof agent !== 'string' || typeof at !== 'string') return undefined;
  if (path.split(' ').length > maxCallDepth || Number.isNaN(Date.parse(at))) return undefined;
  return { path, agent, state: known, at };
}

/** The text that the bytes are as UTF-8, or undefined; a NUL is a sign of binary data. */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Bytes that become characters in one go: a call takes a limited number of arguments. */
const slice = 8 * 1024;

function base64Of(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += slice) binary += String.fromCharCode(...bytes.subarray(at, at + slice));
  return btoa(binary);
}
