import type { ModelMessage, ModelPart, ModelTool } from '../schema/diagnostic.ts';
import { cut, isObject, parsed } from './json.ts';

/** What a model was asked, in the form of the GenAI conventions. */
export interface ModelRequest {
  /** The model's name, where the request has it. */
  readonly model?: string;
  readonly input: ModelMessage[];
  readonly tools: ModelTool[];
}

/** Messages of one request, of which the last are kept, and the pieces of one message. */
const maxMessages = 1_000;
/** Characters of one text. */
const maxText = 100_000;
/** Levels of the arguments and the result of a call. */
const maxLevels = 12;

type Fields = Record<string, unknown>;

/**
 * Messages of a library in the form of the GenAI conventions: of OpenAI's chats, the items of Responses and of the OpenAI
 * Agents SDK, and the messages of Anthropic, Gemini, LangChain and the AI SDK. Their fields differ in names alone, so one
 * reading knows them all. What it does not know, it names by its type. Bytes of files are left out.
 */
export const modelMessages = (messages: readonly unknown[]): ModelMessage[] =>
  messages.slice(-maxMessages).flatMap((message) => messageOf(message) ?? []);

/** The tools of a request in the form of the GenAI conventions. */
export const modelTools = (tools: readonly unknown[]): ModelTool[] => tools.slice(0, maxMessages).flatMap(toolsOf);

/** The request of a provider by its body: an object, or its JSON. Undefined for a body without messages. */
export function modelRequest(given: unknown): ModelRequest | undefined {
  const body = typeof given === 'string' ? parsed(given) : given;
  if (!isObject(body)) return undefined;
  const { model, system, instructions = system, systemInstruction = instructions } = body;
  const messages = [body.messages, body.input, body.contents, body.prompt].find((one) => one !== undefined);
  if (messages === undefined) return undefined;
  const told = Array.isArray(messages) ? messages : [{ role: 'user', content: messages }];
  const first = systemInstruction === undefined ? [] : [systemMessage(systemInstruction)];
  const input = [...first, ...modelMessages(told)];
  const tools = modelTools(Array.isArray(body.tools) ? body.tools : []);
  return { ...(typeof model === 'string' && { model }), input, tools };
}

const systemMessage = (given: unknown): ModelMessage => ({
  role: 'system',
  parts: partsOf(isObject(given) && Array.isArray(given.parts) ? given.parts : given),
});

function messageOf(message: unknown): ModelMessage | undefined {
  if (typeof message === 'string') return { role: 'user', parts: partsOf(message) };
  if (!isObject(message)) return undefined;
  const { role, type, content, tool_calls } = message;
  const known = textIn(role) ?? roles[String(type)];
  // An item that is a call, its result or reasoning has no content of its own.
  if (known === undefined) return itemOf(message);
  const name = roles[known] ?? known;
  const isResult = callId(message) !== undefined && name === 'tool';
  const parts = isResult ? [resultPart(message, content)] : partsOf(content ?? message.parts);
  const calls = Array.isArray(tool_calls) ? tool_calls.filter(isObject).slice(0, maxMessages).map(callPart) : [];
  const has = new Set(parts.map(({ id }) => id));
  // LangChain has calls of Anthropic's models twice.
  return { role: name, parts: [...parts, ...calls.filter(({ id }) => id === undefined || !has.has(id))] };
}

/** The conventions' names of roles. */
const roles: Readonly<Record<string, string>> = {
  human: 'user',
  ai: 'assistant',
  model: 'assistant',
  developer: 'system',
  function: 'tool',
  system: 'system',
  tool: 'tool',
};

function itemOf(item: Fields): ModelMessage | undefined {
  const [part, ...more] = partOf(item);
  if (part === undefined) return undefined;
  return { role: part.type === 'tool_call_response' ? 'tool' : 'assistant', parts: [part, ...more] };
}

function partsOf(content: unknown): ModelPart[] {
  if (typeof content === 'string') return content === '' ? [] : [text(content)];
  return Array.isArray(content) ? content.slice(0, maxMessages).flatMap(partOf) : [];
}

/** A piece of a message, or an item that is a message of its own. */
function partOf(block: unknown): ModelPart[] {
  if (typeof block === 'string') return [text(block)];
  if (!isObject(block)) return [];
  const type = kindOf(block);
  if (/^(reasoning|thinking)/.test(type)) return reasoningParts(block);
  if (/^((server_|mcp_|hosted_)?tool[-_](use|call)|function(_call)?|functionCall)$/.test(type))
    return [callPart(block)];
  if (/result|_output$|functionResponse/.test(type)) {
    const { output, content, result = content } = block;
    return [resultPart(block, output ?? result)];
  }
  const said = textIn(block.text) ?? textIn(block.refusal);
  if (said !== undefined) return said === '' ? [] : [text(said)];
  return [filePart(block, type)];
}

/** Gemini has the type as the name of the only field. */
const kindOf = (block: Fields): string =>
  textIn(block.type) ??
  ['functionCall', 'functionResponse', 'inlineData', 'fileData', 'text'].find((name) => name in block) ??
  'unknown';

function callPart(block: Fields): ModelPart {
  const call = [block.function, block.functionCall].find(isObject) ?? block;
  const given = [call.arguments, call.args, call.input].find((one) => one !== undefined);
  const name = textIn(call.name) ?? textIn(call.toolName);
  const id = callId(block) ?? textIn(block.id);
  return {
    type: 'tool_call',
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
    arguments: bare(typeof given === 'string' ? parsed(given) : given),
  };
}

function resultPart(block: Fields, output: unknown): ModelPart {
  const { functionResponse } = block;
  const of = isObject(functionResponse) ? functionResponse : block;
  const id = callId(of);
  const name = textIn(of.name) ?? textIn(of.toolName);
  const result = isObject(functionResponse) ? functionResponse.response : resultIn(output);
  return {
    type: 'tool_call_response',
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
    response: bare(typeof result === 'string' ? parsed(result) : result),
  };
}

/** The AI SDK has the form of a result around it. */
function resultIn(output: unknown): unknown {
  if (!isObject(output)) return output;
  if (output.type === 'execution-denied') return { denied: true, reason: output.reason };
  if ('value' in output && 'type' in output) return output.value;
  return output.type === 'text' && typeof output.text === 'string' ? output.text : output;
}

function reasoningParts(block: Fields): ModelPart[] {
  const { summary, content, rawContent } = block;
  const said = [textIn(block.thinking), textIn(block.text), textIn(block.reasoning)].find((one) => one !== undefined);
  const lists = [summary, content, rawContent].flatMap((one) => (Array.isArray(one) ? one : []));
  const all = said ?? lists.map((one) => (isObject(one) ? (textIn(one.text) ?? '') : '')).join('\n');
  return all === '' ? [] : [{ type: 'reasoning', content: cut(all, maxText) }];
}

/** A file by its address. One by its bytes would fill what is kept of the call, so its type alone stays. */
function filePart(block: Fields, type: string): ModelPart {
  const source = [block.source, block.image_url, block.inlineData, block.fileData, block.file].find(isObject);
  const fields = { ...block, ...source };
  const { mimeType, mediaType, media_type, mime_type, image_url, url, image, data, file_url, fileUri } = fields;
  const places = [image_url, url, image, data, file_url, fileUri].map((one) => (one instanceof URL ? one.href : one));
  const address = places.find(isText);
  const ofBytes = /^data:([^;,]+)/.exec(address ?? '')?.[1];
  const mime = ofBytes ?? [mimeType, mediaType, media_type, mime_type].find(isText);
  if (address !== undefined && /^(https?|gs|s3):/i.test(address))
    return { type: 'uri', uri: cut(address, 2_000), ...(mime !== undefined && { mime_type: mime }) };
  const isFile = mime !== undefined || places.some((one) => one !== undefined);
  return isFile ? { type: 'blob', ...(mime !== undefined && { mime_type: mime }) } : { type };
}

function toolsOf(tool: unknown): ModelTool[] {
  if (!isObject(tool)) return [];
  if (Array.isArray(tool.functionDeclarations)) return modelTools(tool.functionDeclarations);
  const fields = isObject(tool.function) ? tool.function : tool;
  const schema = [fields.parameters, fields.input_schema, fields.inputSchema].find(isObject);
  const name = textIn(fields.name) ?? textIn(fields.type);
  if (name === undefined) return [];
  const description = textIn(fields.description);
  return [
    {
      name,
      ...(description !== undefined && { description: cut(description, maxText) }),
      ...(schema !== undefined && { parameters: bare(schema) }),
    },
  ];
}

/** The id of the call that a piece is, or that its result is for. */
const callId = ({ tool_call_id, call_id, callId, toolCallId, tool_use_id, id, type }: Fields): string | undefined =>
  [tool_call_id, call_id, callId, toolCallId, tool_use_id].find(isText) ??
  // An item of Responses has an id of its own beside the id of its call.
  (/^tool[-_](use|call)$/.test(String(type)) ? textIn(id) : undefined);

const text = (content: string): ModelPart => ({ type: 'text', content: cut(content, maxText) });

const isText = (value: unknown): value is string => typeof value === 'string';
const textIn = (value: unknown): string | undefined => (isText(value) ? value : undefined);

/** A value without the bytes of files, cut at a depth that no tool needs. */
function bare(value: unknown, levels = maxLevels): unknown {
  if (typeof value === 'string') {
    const [, type] = /^data:([^;,]*);base64,/.exec(value) ?? [];
    return type === undefined ? cut(value, maxText) : `data:${type}`;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (levels === 0 || ArrayBuffer.isView(value)) return '…';
  if (Array.isArray(value)) return value.slice(0, maxMessages).map((one) => bare(one, levels - 1));
  if (!isPlain(value)) return value;
  const isFile = ['mimeType', 'mediaType', 'media_type', 'mime_type'].some((name) => name in value);
  const entries = Object.entries(value).slice(0, maxMessages);
  const kept = entries.filter(([name]) => !isFile || (name !== 'data' && name !== 'blob'));
  return Object.fromEntries(kept.map(([name, one]) => [name, bare(one, levels - 1)]));
}

/** Others, such as a Date, have a form of their own in JSON. */
const isPlain = (value: object): boolean => [Object.prototype, null].includes(Object.getPrototypeOf(value));
