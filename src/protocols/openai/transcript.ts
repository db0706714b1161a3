import { fail } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { ClientTool } from '../../core/request.ts';
import type { MessageInput, MessagePart, TrajectoryMetadata } from '../../schema/message.ts';
import { clientTool, objectIn } from '../part-kinds.ts';

/** An answer of the client to a call that it was asked for. */
export interface CallAnswer {
  readonly call_id: string;
  readonly parts: MessagePart[];
  /** Where the request has it. */
  readonly path: string;
}

/**
 * Collects the messages of a request. What the assistant has said, its calls and their results follow each other in one
 * message of the agent, until the user says something.
 */
export class Transcript {
  readonly messages: MessageInput[] = [];
  readonly #role: string;
  readonly #instructions: string[] = [];
  /** Calls of the history, whose results may follow. */
  readonly #calls = new Map<string, TrajectoryMetadata>();

  constructor(model: string) {
    // An unknown agent is refused later; its name may be none.
    this.#role = /^[\w-]+$/.test(model) ? `agent/${model}` : 'agent';
  }

  /** What system and developer messages say. */
  get instructions(): string | undefined {
    return this.#instructions.length === 0 ? undefined : this.#instructions.join('\n\n');
  }

  instruct(text: string | undefined, place: 'first' | 'last' = 'last'): void {
    if (text === undefined || text === '') return;
    if (place === 'first') this.#instructions.unshift(text);
    else this.#instructions.push(text);
  }

  /**
   * Ends the list. Where it has only system and developer messages, as that of a chat front end that asks for a title,
   * they are what the user says: an agent answers messages. @throws RivuletError `validation_failed`
   */
  end(path: string): void {
    if (this.messages.length > 0) return;
    const content = this.instructions;
    if (content === undefined) throw fail('validation_failed', path, 'expected a message; there is none with a text');
    this.#instructions.length = 0;
    this.user([{ content_type: 'text/plain', content }]);
  }

  user(parts: MessagePart[]): void {
    this.messages.push({ role: 'user', parts });
  }

  agent(...parts: MessagePart[]): void {
    const last = this.messages.at(-1);
    if (last !== undefined && last.role === this.#role) last.parts.push(...parts);
    else this.messages.push({ role: this.#role, parts });
  }

  /** A call of a tool, with its result where that is known. */
  call(call_id: string | undefined, tool_name: string, args: string, output?: string): void {
    const metadata: TrajectoryMetadata = {
      kind: 'trajectory',
      tool_name,
      tool_input: fieldsOf(args, 'input'),
      ...(output !== undefined && { tool_output: fieldsOf(output, 'output') }),
    };
    if (call_id !== undefined) this.#calls.set(call_id, metadata);
    this.agent({ content_type: 'text/plain', metadata });
  }

  /** The result of a call before. @throws RivuletError `validation_failed` */
  result(call_id: string, output: string, path: string): void {
    const call = this.#calls.get(call_id);
    if (call === undefined) throw fail('validation_failed', path, 'expected the call before its output; there is none');
    call.tool_output = fieldsOf(output, 'output');
  }

  reasoning(message: string): void {
    if (message !== '') this.agent({ content_type: 'text/plain', metadata: { kind: 'trajectory', message } });
  }
}

/** A text that may be a JSON object; any other is the only field of one. */
const fieldsOf = (text: string, field: string): Record<string, unknown> => objectIn(text) ?? { [field]: text };

/** The tools that a client offers to run. Those that OpenAI's servers would run are not for an agent. */
export function clientTools(tools: readonly Readonly<Record<string, unknown>>[]): ClientTool[] {
  return tools.flatMap((tool) => {
    // Chat Completions put the function into a field.
    const given = isObject(tool.function) ? tool.function : tool;
    const { name } = given;
    if (tool.type !== 'function' || typeof name !== 'string' || name === '') return [];
    return [clientTool(name.slice(0, maxName), given)];
  });
}

const maxName = 255;

/** The fields of a body that the client has set, of those with these names. */
export function chosen(body: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = Object.hasOwn(body, name) ? body[name] : undefined;
      return value === undefined || value === null ? [] : [[name, value]];
    }),
  );
}
