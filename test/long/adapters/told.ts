/** A message that a model was told, in OpenAI's chat completions. */
export interface Told {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly arguments: string } }[];
  readonly tool_call_id?: string;
}

export const textIn = (content: unknown): string =>
  Array.isArray(content) ? content.map((part) => String(part?.text ?? '')).join('') : String(content ?? '');

/** Why OpenAI's server refuses these messages; undefined where it takes them. */
export function violationIn(messages: readonly Told[]): string | undefined {
  const open = new Set<string>();
  for (const [index, { role, content, tool_calls = [], tool_call_id = '' }] of messages.entries()) {
    if (role === 'tool') {
      if (!open.delete(tool_call_id)) return `messages[${index}]: the result ${tool_call_id} has no call before it`;
      continue;
    }
    if (open.size > 0) return `messages[${index}]: before it, the calls ${[...open]} have no result`;
    if (role === 'assistant' && tool_calls.length === 0 && textIn(content) === '')
      return `messages[${index}]: an assistant message without text and calls`;
    for (const call of tool_calls) open.add(call.id);
  }
  return open.size > 0 ? `at the end, the calls ${[...open]} have no result` : undefined;
}

/** The messages in one line: `user: Pay 10 | assistant: #1 I pay. → {"amount":10} | tool: {"paid":10} | …` */
export const lineOf = (messages: readonly Told[]): string =>
  messages
    .map(({ role, content, tool_calls = [] }) =>
      [`${role}:`, textIn(content).trim(), ...tool_calls.map((call) => `→ ${call.function.arguments}`)].join(' '),
    )
    .join(' | ');
