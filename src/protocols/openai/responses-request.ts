import { type Static, Type } from '@sinclair/typebox';
import { fail } from '../../core/errors.ts';
import type { AgentRequest } from '../../core/request.ts';
import { open } from '../../core/validate.ts';
import type { MessageInput } from '../../schema/message.ts';
import { partsOf, textOfContents } from './content.ts';
import { conversationText } from './ids.ts';
import { AnyItem, Id, type Item, isOwn, type OwnItems, ownItems } from './items.ts';
import { type CallAnswer, chosen, clientTools, Transcript } from './transcript.ts';

/** The body of `POST /responses`. Fields that it does not list are ignored, or passed to the agent: see `passed`. */
export const ResponseRequest = open({
  model: Type.String({ minLength: 1, maxLength: 255, description: 'the name of an agent' }),
  input: Type.Union([Type.String(), Type.Array(AnyItem, { minItems: 1, maxItems: 10_000 })]),
  instructions: Type.Optional(Type.String()),
  previous_response_id: Type.Optional(Id),
  conversation: Type.Optional(Type.Union([Id, Type.Object({ id: Id })])),
  stream: Type.Optional(Type.Boolean()),
  background: Type.Optional(Type.Boolean()),
  store: Type.Optional(Type.Boolean()),
  tools: Type.Optional(Type.Array(Type.Record(Type.String(), Type.Unknown()), { maxItems: 1_000 })),
});
export type ResponseRequest = Static<typeof ResponseRequest>;

/** What else a client may choose. The agent finds it in `context.request.metadata`; answers repeat it. */
const passed = [
  'background',
  'frequency_penalty',
  'include',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'parallel_tool_calls',
  'presence_penalty',
  'previous_response_id',
  'prompt_cache_key',
  'reasoning',
  'safety_identifier',
  'service_tier',
  'store',
  'temperature',
  'text',
  'tool_choice',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
];

/** A request for a response, in the words of the engine. */
export interface AskedResponse {
  readonly messages: MessageInput[];
  readonly request: AgentRequest;
  /** The client's text for the session. */
  readonly conversation: string | undefined;
  /** The last item, where it answers a call. */
  readonly answer: CallAnswer | undefined;
}

/** The ids of items that clients need not repeat. */
export function referencesIn({ input }: ResponseRequest): string[] {
  if (typeof input === 'string') return [];
  return input.flatMap((item) => (isOwn(item) && item.type === 'item_reference' ? [item.id] : []));
}

/** `known` has the items that `referencesIn` names. @throws RivuletError `validation_failed` */
export function readResponseRequest(body: ResponseRequest, known: ReadonlyMap<string, Item>): AskedResponse {
  const { model, input, instructions, previous_response_id, tools = [] } = body;
  const given = typeof body.conversation === 'string' ? body.conversation : body.conversation?.id;
  if (given !== undefined && previous_response_id !== undefined) {
    throw fail('validation_failed', 'conversation', 'send this or previous_response_id, not both');
  }
  const transcript = new Transcript(model);
  const { items, ignored }: OwnItems =
    typeof input === 'string' ? { items: [{ role: 'user', content: input }], ignored: [] } : ownItems(input);
  const last = items.at(-1);
  const path = `input[${items.length - 1}].output`;
  const answer =
    last?.type === 'function_call_output'
      ? { call_id: last.call_id, parts: partsOf(last.output, path), path }
      : undefined;
  // An answer to a response of this server comes without the call; in a conversation, a list of its own may have both.
  const isAlone = items.every((item) => item?.type === 'function_call_output');
  const isAnswer = answer !== undefined && (previous_response_id !== undefined || (given !== undefined && isAlone));
  if (isAnswer && items.some((item) => item !== undefined && 'role' in item)) {
    throw fail('validation_failed', 'input', 'expected nothing but the function_call_output that answers the call');
  }
  for (const [index, item] of isAnswer ? [] : items.entries()) {
    if (item !== undefined && !isSaidAgain(resolved(item, known), resolved(items[index + 1], known)))
      addItem(transcript, item, `input[${index}]`, known);
  }
  if (!isAnswer) transcript.end('input');
  transcript.instruct(instructions, 'first');
  const { messages } = transcript;
  const offered = clientTools(tools);
  const request: AgentRequest = {
    protocol: 'openai',
    conversation: given,
    instructions: transcript.instructions,
    metadata: { ...chosen(body, passed), ...(ignored.length > 0 && { ignored_items: ignored }) },
    ...(offered.length > 0 && { tools: offered }),
  };
  return { messages, request, conversation: given === undefined ? undefined : conversationText(given), answer };
}

const resolved = (item: Item | undefined, known: ReadonlyMap<string, Item>): Item | undefined =>
  item?.type === 'item_reference' ? known.get(item.id) : item;

/**
 * Whether an item is an interrupted message, which the items after it say anew. An incomplete message that ends a response is
 * none: that response has failed, or was cancelled.
 */
const isSaidAgain = (item: Item | undefined, next: Item | undefined): boolean =>
  item !== undefined &&
  'role' in item &&
  item.role === 'assistant' &&
  item.status === 'incomplete' &&
  next !== undefined &&
  ('role' in next ? next.role === 'assistant' : next.type !== 'function_call_output');

function addItem(transcript: Transcript, item: Item, path: string, known: ReadonlyMap<string, Item>): void {
  switch (item.type) {
    case 'function_call':
      transcript.call(item.call_id, item.name, item.arguments);
      break;
    case 'function_call_output':
      transcript.result(item.call_id, textOfContents(item.output), `${path}.call_id`);
      break;
    case 'mcp_call':
      transcript.call(undefined, item.name, item.arguments, item.output ?? undefined);
      break;
    case 'reasoning': {
      const texts = [...(item.summary ?? []), ...(item.content ?? [])];
      transcript.reasoning(texts.map(({ text }) => text).join('\n'));
      break;
    }
    case 'image_generation_call': {
      const { result: content, output_format = 'png' } = item;
      if (content === undefined) break;
      transcript.agent({ content_type: `image/${output_format}`, content_encoding: 'base64', content });
      break;
    }
    case 'item_reference': {
      const found = known.get(item.id);
      if (found === undefined) throw fail('validation_failed', `${path}.id`, `there is no item ${item.id}`);
      addItem(transcript, found, path, known);
      break;
    }
    default:
      if (item.role === 'user') transcript.user(partsOf(item.content, `${path}.content`));
      else if (item.role === 'assistant') transcript.agent(...partsOf(item.content, `${path}.content`));
      else transcript.instruct(textOfContents(item.content));
  }
}
