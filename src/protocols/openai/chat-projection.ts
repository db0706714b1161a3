import { type CutOff, cutOffOf, isModelCutOff, type ModelCutOff } from '../../core/cut-off.ts';
import { flat, insideOf, toLine } from '../../core/encode.ts';
import { questionText, textOf } from '../../core/parts.ts';
import { insideToken } from '../../core/recognize.ts';
import { hasResult } from '../../core/tool-calls.ts';
import { usageAfter } from '../../core/usage.ts';
import type { Projection } from '../../http/sse/projection.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Event } from '../../schema/event.ts';
import type { MessagePart } from '../../schema/message.ts';
import type { Run, RunUsage } from '../../schema/run.ts';
import { kindOf } from '../part-kinds.ts';
import { errorInStream } from './errors.ts';
import { GrowingText } from './growing-text.ts';
import { callId } from './ids.ts';
import { type Link, placeOf, withLink } from './link-places.ts';
import { callOfQuestion, linkTo, urlCitation } from './output-items.ts';
import { countsOf, seconds } from './response-object.ts';

// A log as chat completions: one until the run first awaits, and one more for each time that it goes on.

/** What a client has asked for. */
export interface ChatOptions {
  /** A last chunk with the usage. */
  readonly usage: boolean;
  /** The names of the client's tools, which answer questions. */
  readonly tools: readonly string[];
  /** The state has the whole text, for a client that does not stream. */
  readonly whole: boolean;
}

/** How a completion ended. */
type ChatOutcome =
  | { readonly finish: 'stop' | ModelCutOff; readonly usage: RunUsage | undefined }
  /** A call that the client answers. */
  | { readonly finish: 'tool_calls'; readonly call: string; readonly usage: RunUsage | undefined }
  /** A question in the text, whose answer no request can bring to the run. */
  | { readonly finish: 'question'; readonly usage: RunUsage | undefined }
  | { readonly finish: 'error'; readonly error: ErrorBody };

export interface ChatState {
  readonly run: Run | undefined;
  readonly id: string;
  /** A chunk, up to its choices. */
  readonly head: string;
  /** The chunk of a token, up to the token and after its quote. */
  readonly tokenHead: string;
  /** Whether there is any text so far. */
  readonly said: boolean;
  /** The text so far, as the inside of a JSON string; for a client that streams, its length. */
  readonly content: GrowingText;
  /** Where the agent's message has links in `content`. */
  readonly links: readonly Link[];
  /** As `content`; for a client that streams, nothing. */
  readonly reasoning: GrowingText;
  /** The inside of a JSON list. */
  readonly annotations: string;
  /** Whether the next text belongs to another message than the text so far. */
  readonly isNext: boolean;
  /** What an index of the agent's message is short of one of the whole text, at its end. */
  readonly shift: number;
  /** Why the last message is not whole. */
  readonly cutOff: CutOff | undefined;
  readonly outcome: ChatOutcome | undefined;
  /** The usage of the run that was told with its completions so far. */
  readonly told: RunUsage | undefined;
  /** What the agent says while the run awaits, as the inside of a JSON string: the beginning of the next completion. */
  readonly late: string;
}

const start = (whole: boolean): ChatState => ({
  run: undefined,
  id: '',
  head: '',
  tokenHead: '',
  said: false,
  content: new GrowingText(whole),
  links: [],
  reasoning: new GrowingText(),
  annotations: '',
  isNext: false,
  shift: 0,
  cutOff: undefined,
  outcome: undefined,
  told: undefined,
  late: '',
});

const choiceHead = '{"index":0,"delta":';
/** The end of a chunk, after the finish reason; for a client that gets its usage in the last chunk, the others have none. */
const ends = { plain: '}]}\n\n', usage: '}],"usage":null}\n\n' };
/** The end of a token's chunk, after the token. */
const tokenEnd = '"},"logprobs":null,"finish_reason":null';
const tokenEnds = { plain: `${tokenEnd}${ends.plain}`, usage: `${tokenEnd}${ends.usage}` };

/** The chunks of one event. */
class Chunks {
  readonly #frames: string[];
  readonly options: ChatOptions;
  readonly event: number;

  constructor(frames: string[], options: ChatOptions, event: number) {
    this.#frames = frames;
    this.options = options;
    this.event = event;
  }

  /** `delta` is JSON. */
  add(state: ChatState, delta: string, finish: 'stop' | 'tool_calls' | ModelCutOff | undefined = undefined): void {
    const reason = finish === undefined ? 'null' : `"${finish}"`;
    const end = this.options.usage ? ends.usage : ends.plain;
    this.#frames.push(`${state.head}${choiceHead}${delta},"logprobs":null,"finish_reason":${reason}${end}`);
  }

  /** Text, as the inside of a JSON string. */
  text(state: ChatState, token: string): void {
    this.#frames.push(`${state.tokenHead}${token}${this.options.usage ? tokenEnds.usage : tokenEnds.plain}`);
  }

  end(state: ChatState, usage: RunUsage | undefined): void {
    if (this.options.usage) {
      this.#frames.push(`${state.head}],"usage":${JSON.stringify(chatUsage(usage))}}\n\n`);
    }
    this.#frames.push('data: [DONE]\n\n');
  }

  fail(error: ErrorBody): void {
    this.#frames.push(chatErrorFrame(error), 'data: [DONE]\n\n');
  }
}

/** The state at the beginning of a completion. */
function completion(run: Run, id: string, { whole }: ChatOptions): ChatState {
  const known = `"id":"${id}","object":"chat.completion.chunk","created":${createdAt(run)},"model":"${run.agent_name}"`;
  const head = `data: {${known},"choices":[`;
  return { ...start(whole), run, id, head, tokenHead: flat(`${head}${choiceHead}{"content":"`) };
}

const createdAt = (run: Run | undefined): number => (run === undefined ? 0 : seconds(run.created_at));

export const chatErrorFrame = (error: ErrorBody): string => `data: ${toLine({ error: errorInStream(error) })}\n\n`;

/** Clients add the counts up, so there are some even where the agent reports nothing. */
function chatUsage(usage: RunUsage = { tokens: 0 }) {
  const { input, output, total } = countsOf(usage);
  return { prompt_tokens: input, completion_tokens: output, total_tokens: total };
}

/** Only the client of a request reads the stream, so its frames are not shared. */
export const chatProjection = (options: ChatOptions): Projection<ChatState> => ({
  start: start(options.whole),
  shared: false,
  project(state, line, n, frames) {
    const token = insideToken(line);
    const chunks = new Chunks(frames, options, n);
    return token === undefined ? afterEvent(state, JSON.parse(line), chunks) : addText(state, token, chunks);
  },
});

function afterEvent(state: ChatState, event: Event, chunks: Chunks): ChatState {
  switch (event.type) {
    case 'run.created':
      return completion(event.run, `chatcmpl-${event.run.run_id}`, chunks.options);
    case 'run.in-progress':
      return working(state, chunks);
    case 'message.created':
      return {
        ...state,
        isNext: state.outcome === undefined ? state.said : state.late !== '',
        links: [],
      };
    case 'message.part':
      return addPart(state, event.part, chunks);
    case 'message.completed':
      return { ...state, shift: state.shift + textOf(event.message).length, cutOff: cutOffOf(event.message) };
    case 'run.awaiting':
      return awaiting(state, event.run, chunks);
    case 'run.completed':
    case 'run.failed':
    case 'run.cancelled':
      return state.outcome === undefined ? ended(state, event.run, chunks) : state;
    case 'generic':
    case 'error':
      return state;
    default:
      event satisfies never;
      return state;
  }
}

function working(before: ChatState, chunks: Chunks): ChatState {
  const { run, outcome, told, shift, isNext, late } = before;
  const isNew = outcome !== undefined && run !== undefined;
  const id = `chatcmpl-${run?.run_id}-${chunks.event}`;
  const state = isNew ? { ...completion(run, id, chunks.options), told, shift } : before;
  chunks.add(state, '{"role":"assistant","content":""}');
  return isNew ? { ...addText(state, late, chunks), isNext: isNext && late !== '' } : state;
}

/** Adds text, the inside of a JSON string; a blank line is between two messages. */
function addText(before: ChatState, token: string, chunks: Chunks): ChatState {
  if (token === '') return before;
  const { isNext, shift, late, outcome } = before;
  const more = isNext ? `\\n\\n${token}` : token;
  const state = isNext ? { ...before, shift: shift + 2, isNext: false } : before;
  if (outcome !== undefined) return { ...state, late: late + more };
  if (isNext) chunks.text(state, '\\n\\n');
  chunks.text(state, token);
  state.content.add(more);
  return state.said ? state : { ...state, said: true };
}

function addPart(state: ChatState, part: MessagePart, chunks: Chunks): ChatState {
  const kind = kindOf(part);
  switch (kind.kind) {
    case 'text':
      return addText(state, insideOf(kind.text), chunks);
    case 'data':
      return addText(state, insideOf(textOf(kind.part)), chunks);
    case 'file': {
      const link = linkTo(kind);
      const linked = addText(state, insideOf(link), chunks);
      const { length } = textOf(part);
      const more = link.length - length;
      const at = linked.content.chars - link.length - linked.shift;
      const { links, outcome, shift } = linked;
      return {
        ...linked,
        links: outcome === undefined ? withLink(links, { at, chars: length, more }) : links,
        shift: shift + more,
      };
    }
    case 'citation': {
      const cited = addText(state, insideOf(kind.text), chunks);
      if (kind.citation.url === undefined || cited.outcome !== undefined) return cited;
      // Before the text of its message, the blank line is still to come.
      const shift = cited.isNext ? cited.shift + 2 : cited.shift;
      const { type: _, ...source } = urlCitation(kind.citation, (index, edge) =>
        placeOf(cited.links, index, edge, shift),
      );
      const annotation = toLine({ type: 'url_citation', url_citation: source });
      chunks.add(cited, `{"annotations":[${annotation}]}`);
      return { ...cited, annotations: cited.annotations === '' ? annotation : `${cited.annotations},${annotation}` };
    }
    case 'reasoning':
      return addReasoning(state, kind.text, chunks);
    case 'tool':
      // The result of a call that was shown when it began.
      if (kind.call.tool_call_id !== undefined && hasResult(kind.call)) return state;
      return addReasoning(state, `${kind.name} ${JSON.stringify(kind.call.tool_input ?? {})}`, chunks);
    default:
      return kind satisfies never;
  }
}

/** Not a field of OpenAI's, but one that chat clients show. */
function addReasoning(state: ChatState, text: string, chunks: Chunks): ChatState {
  if (text === '' || state.outcome !== undefined) return state;
  const line = insideOf(`${text}\n`);
  chunks.add(state, `{"reasoning_content":"${line}"}`);
  if (chunks.options.whole) state.reasoning.add(line);
  return state;
}

function awaiting(before: ChatState, { await_request: request, usage: told }: Run, chunks: Chunks): ChatState {
  const { run } = before;
  if (run === undefined || request === undefined) return before;
  const { tools } = chunks.options;
  const usage = usageAfter(before.told, told);
  const call = callOfQuestion(request, tools);
  if (!tools.includes(call.name)) {
    const asked = addText({ ...before, isNext: before.said }, insideOf(questionText(request)), chunks);
    chunks.add(asked, '{}', 'stop');
    chunks.end(asked, usage);
    return { ...asked, told, shift: 0, isNext: false, outcome: { finish: 'question', usage } };
  }
  const id = callId(run.run_id, chunks.event);
  const whole = toLine({ id, type: 'function', function: call });
  chunks.add(before, `{"tool_calls":[{"index":0,${whole.slice(1)}]}`);
  chunks.add(before, '{}', 'tool_calls');
  chunks.end(before, usage);
  return { ...before, told, shift: 0, isNext: false, outcome: { finish: 'tool_calls', call: whole, usage } };
}

function ended(state: ChatState, { error, usage: whole, status }: Run, chunks: Chunks): ChatState {
  if (status === 'failed' && error !== undefined) {
    chunks.fail(error);
    return { ...state, outcome: { finish: 'error', error } };
  }
  const usage = usageAfter(state.told, whole);
  const finish = isModelCutOff(state.cutOff) ? state.cutOff : 'stop';
  chunks.add(state, '{}', finish);
  chunks.end(state, usage);
  return { ...state, outcome: { finish, usage } };
}

/** The whole completion as JSON. */
export function completionObject(state: ChatState): string {
  const { id, run, annotations, outcome } = state;
  const [content, reasoning] = [state.content.whole, state.reasoning.whole];
  const calls = outcome?.finish === 'tool_calls' ? `,"tool_calls":[${outcome.call}]` : '';
  const usage = outcome !== undefined && 'usage' in outcome ? outcome.usage : undefined;
  const text = content === '' && calls !== '' ? 'null' : `"${content}"`;
  const thoughts = reasoning === '' ? '' : `,"reasoning_content":"${reasoning}"`;
  const message = `{"role":"assistant","content":${text}${thoughts},"refusal":null,"annotations":[${annotations}]${calls}}`;
  const finish = outcome?.finish === 'question' ? 'stop' : (outcome?.finish ?? 'stop');
  const choice = `{"index":0,"message":${message},"logprobs":null,"finish_reason":"${finish}"}`;
  const head = toLine({ id, object: 'chat.completion', created: createdAt(run), model: run?.agent_name });
  return `${head.slice(0, -1)},"choices":[${choice}],"usage":${JSON.stringify(chatUsage(usage))}}`;
}
