import type { Message, MessagePart } from '../schema/message.ts';
import { cutOffOf } from './cut-off.ts';
import { isObject } from './json.ts';
import { textOf } from './parts.ts';
import { isCallOnly, type OpenCall, type ToolResult, toolChange } from './tool-calls.ts';

/** A call of a tool, for a model that reads the conversation. */
export interface SaidCall {
  /** Different for each call of the conversation. */
  readonly id: string;
  readonly name: string;
  readonly input: object;
  /** Neither field where the run ended before. */
  readonly result: ToolResult;
}

/** What a user or an agent has said at once: parts, and the calls of tools after them. */
export interface Said {
  readonly role: 'user' | 'agent';
  readonly parts: readonly MessagePart[];
  readonly calls: readonly SaidCall[];
  /** The message that it is of, for its other fields. */
  readonly message: Message;
  /** Whether it is the last of that message. */
  readonly ends: boolean;
}

interface Growing extends Said {
  readonly parts: MessagePart[];
  readonly calls: { -readonly [Field in keyof SaidCall]: SaidCall[Field] }[];
  ends: boolean;
}

/**
 * A conversation as models take it: each call of a tool with its result, wherever that came, and without the steps that only
 * inform a person. A model that is told what it has called knows in the next turn that the tool ran.
 */
export function saidIn(messages: readonly Message[]): Said[] {
  const all: Growing[] = [];
  const calls = new Map<number, Growing['calls'][number]>();
  let open: readonly OpenCall[] = [];
  let n = 0;
  for (const message of withoutApprovals(messages)) {
    const role = message.role === 'user' ? 'user' : 'agent';
    let last: Growing | undefined;
    const add = (): Growing => {
      last = { role, parts: [], calls: [], message, ends: false };
      all.push(last);
      return last;
    };
    // A turn does not answer the calls of the one before it.
    if (role === 'user') open = [];
    for (const part of message.parts) {
      n += 1;
      const { metadata } = part;
      if (metadata?.kind !== 'trajectory') {
        (last === undefined || last.calls.length > 0 ? add() : last).parts.push(part);
        continue;
      }
      if (metadata.tool_name === undefined) continue;
      const change = toolChange(open, metadata, n);
      open = change.open;
      const { begun, name, tool_input: input } = change.call;
      if (change.begins && (isCallOnly(metadata) || change.result !== undefined)) {
        const call = { id: `call_${begun}`, name, input, result: {} };
        calls.set(begun, call);
        (last ?? add()).calls.push(call);
      }
      const call = calls.get(begun);
      if (change.result !== undefined && call !== undefined) call.result = change.result;
    }
    // An answer that was stopped before its first word is one: the model sees that the user got none.
    if (cutOffOf(message) !== undefined) last ??= add();
    if (last !== undefined) last.ends = true;
  }
  return all;
}

/** Asks a model to continue an answer that a crash cut off. */
export const goOn = 'You were cut off. Go on exactly where you stopped, and repeat nothing.';

/** The call that a person is asked to permit, where a message is such a question; see `approvalParts`. */
function approvalIn({ role, parts: [text, call, ...more] }: Message): unknown {
  if (role === 'user' || more.length > 0 || text?.content_type !== 'text/plain') return undefined;
  try {
    const asked: unknown = JSON.parse(call?.content ?? '');
    const isApproval = isObject(asked) && text.content === questionOf(String(asked.tool_name)) && 'tool_input' in asked;
    return isApproval ? asked : undefined;
  } catch {
    return undefined;
  }
}

const questionOf = (tool_name: string): string => `May the tool ${tool_name} run?`;

/** The question whether a tool may run: a text, and its call as JSON. A conversation for a model is without it and its reply. */
export const approvalParts = (tool_name: string, tool_input: unknown): MessagePart[] => [
  { content_type: 'text/plain', content: questionOf(tool_name) },
  { content_type: 'application/json', content: JSON.stringify({ tool_name, tool_input }) },
];

/** A run that was cancelled has no reply, and the next message of the user is another turn. */
const withoutApprovals = (messages: readonly Message[]): Message[] =>
  messages.filter((message, index) => {
    const before = messages[index - 1];
    const isReply = message.role === 'user' && /^\s*(true|false)\s*$/.test(textOf(message));
    const isAnswer = isReply && before !== undefined && approvalIn(before) !== undefined;
    return !isAnswer && approvalIn(message) === undefined;
  });
