import { type Static, Type } from '@sinclair/typebox';
import type { AgentRequest } from '../../core/request.ts';
import { open } from '../../core/validate.ts';
import type { MessageInput } from '../../schema/message.ts';
import { Contents, partsOf, textOfContents } from './content.ts';
import { type CallAnswer, chosen, clientTools, Transcript } from './transcript.ts';

const Id = Type.String({ minLength: 1, maxLength: 255 });

const ToolCall = Type.Object({
  id: Id,
  type: Type.Optional(Type.Literal('function')),
  function: Type.Object({ name: Id, arguments: Type.String() }),
});

const ChatMessage = Type.Union([
  Type.Object({ role: Type.Literal('user'), content: Contents }),
  Type.Object({ role: Type.Literal('system'), content: Contents }),
  Type.Object({ role: Type.Literal('developer'), content: Contents }),
  Type.Object({
    role: Type.Literal('assistant'),
    content: Type.Optional(Contents),
    reasoning_content: Type.Optional(Type.String()),
    tool_calls: Type.Optional(Type.Array(ToolCall, { maxItems: 1_000 })),
  }),
  Type.Object({ role: Type.Literal('tool'), tool_call_id: Id, content: Contents }),
]);
type ChatMessage = Static<typeof ChatMessage>;

/** The body of `POST /chat/completions`. Fields that it does not list are ignored, or passed to the agent: see `passed`. */
export const ChatRequest = open({
  model: Type.String({ minLength: 1, maxLength: 255, description: 'the name of an agent' }),
  messages: Type.Array(ChatMessage, { minItems: 1, maxItems: 10_000 }),
  stream: Type.Optional(Type.Boolean()),
  stream_options: Type.Optional(Type.Object({ include_usage: Type.Optional(Type.Boolean()) })),
  tools: Type.Optional(Type.Array(Type.Record(Type.String(), Type.Unknown()), { maxItems: 1_000 })),
});
export type ChatRequest = Static<typeof ChatRequest>;

/** What else a client may choose. The agent finds it in `context.request.metadata`. */
const passed = [
  'frequency_penalty',
  'logit_bias',
  'max_completion_tokens',
  'max_tokens',
  'metadata',
  'modalities',
  'parallel_tool_calls',
  'presence_penalty',
  'prompt_cache_key',
  'reasoning_effort',
  'response_format',
  'safety_identifier',
  'seed',
  'service_tier',
  'stop',
  'temperature',
  'tool_choice',
  'top_p',
  'user',
  'verbosity',
];

/** A request for a completion, in the words of the engine. */
export interface AskedCompletion {
  readonly messages: MessageInput[];
  readonly request: AgentRequest;
  /** The last message, where it answers a call. */
  readonly answer: CallAnswer | undefined;
}

/** @throws RivuletError `validation_failed` */
export function readChatRequest(body: ChatRequest): AskedCompletion {
  const transcript = new Transcript(body.model);
  for (const [index, message] of body.messages.entries()) addMessage(transcript, message, `messages[${index}]`);
  transcript.end('messages');
  const { messages, instructions } = transcript;
  const last = body.messages.at(-1);
  const path = `messages[${body.messages.length - 1}].content`;
  const answer =
    last?.role === 'tool' ? { call_id: last.tool_call_id, parts: partsOf(last.content, path), path } : undefined;
  const tools = clientTools(body.tools ?? []);
  const request: AgentRequest = {
    protocol: 'openai',
    instructions,
    metadata: chosen(body, passed),
    ...(tools.length > 0 && { tools }),
  };
  return { messages, request, answer };
}

function addMessage(transcript: Transcript, message: ChatMessage, path: string): void {
  switch (message.role) {
    case 'user':
      transcript.user(partsOf(message.content, `${path}.content`));
      break;
    case 'system':
    case 'developer':
      transcript.instruct(textOfContents(message.content));
      break;
    case 'tool':
      transcript.result(message.tool_call_id, textOfContents(message.content), `${path}.tool_call_id`);
      break;
    case 'assistant': {
      const { content, reasoning_content = '', tool_calls = [] } = message;
      transcript.reasoning(reasoning_content);
      if (content !== undefined && content !== '') transcript.agent(...partsOf(content, `${path}.content`));
      for (const { id, function: call } of tool_calls) transcript.call(id, call.name, call.arguments);
    }
  }
}
