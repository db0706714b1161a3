import { type CutOff, cutOffOf } from '../../core/cut-off.ts';
import { flat, insideOf, toLine } from '../../core/encode.ts';
import { textOf } from '../../core/parts.ts';
import { endsMessage, finishReasonIn, insideToken } from '../../core/recognize.ts';
import { type OpenCall, type ToolResult, toolChange } from '../../core/tool-calls.ts';
import { usageAfter } from '../../core/usage.ts';
import type { Projection } from '../../http/sse/projection.ts';
import type { Event } from '../../schema/event.ts';
import type { CitationMetadata, MessagePart, TrajectoryMetadata } from '../../schema/message.ts';
import type { Run, RunStatus, RunUsage } from '../../schema/run.ts';
import { kindOf } from '../part-kinds.ts';
import { responseError } from './errors.ts';
import { GrowingText } from './growing-text.ts';
import { callId, responseId, sequenceNumber } from './ids.ts';
import { type Link, placeOf, withLink } from './link-places.ts';
import {
  callOfQuestion,
  imageBytes,
  imageCall,
  linkTo,
  messageItem,
  reasoning,
  textPart,
  toolCall,
  urlCitation,
  type WholeItem,
} from './output-items.ts';
import {
  type Echo,
  isOver,
  type ResponseProgress,
  type ResponseStatus,
  responseObject,
  seconds,
} from './response-object.ts';

// A log as the responses that it is: one until the run first awaits, and one more for each time that it goes on.

/** A message of the output that still grows. */
interface OpenMessage {
  readonly id: string;
  /** The frame of a token, up to the token and after its quote. */
  readonly head: string;
  readonly text: GrowingText;
  readonly links: readonly Link[];
  readonly annotations: string;
  readonly annotated: number;
  /** What an index of the agent's message is short of one of this text, at its end. */
  readonly shift: number;
  /** Where it begins in the agent's message. */
  readonly from: number;
}

/** A finished message of the output, while the agent's message goes on: a citation of its text may still come. */
interface EarlierMessage extends OpenMessage {
  /** Its index in the output. */
  readonly index: number;
}

/** Finished messages that citations find. */
const maxEarlier = 100;

/** The response that the log is in. */
export interface CurrentResponse extends ResponseProgress {
  /** The number of finished items. */
  readonly items: number;
  /** Calls of the agent's tools whose items are in progress; `text` is the item's JSON in the output. */
  readonly running: readonly {
    readonly call: OpenCall;
    readonly id: string;
    readonly index: number;
    readonly text: string;
  }[];
  /** The call that the client has to answer, where the response has ended with one. */
  readonly call_id: string | undefined;
}

export interface ResponsesState {
  readonly run: Run | undefined;
  readonly response: CurrentResponse | undefined;
  readonly open: OpenMessage | undefined;
  /** What the agent says while the run awaits, as the inside of a JSON string. */
  readonly late: string;
  /** Characters of the agent's message before the open one of the output. */
  readonly said: number;
  /** The finished messages of the output that have them. */
  readonly earlier: readonly EarlierMessage[];
  /** Calls of the agent's tools that have no result yet. */
  readonly calls: readonly OpenCall[];
  /** Why the agent's last message is not whole. */
  readonly cutOff: CutOff | undefined;
  /** The usage of the run that was told with its responses so far. */
  readonly told: RunUsage | undefined;
}

const start: ResponsesState = {
  run: undefined,
  response: undefined,
  open: undefined,
  late: '',
  said: 0,
  earlier: [],
  calls: [],
  cutOff: undefined,
  told: undefined,
};

/** The frames of one event. */
class Frames {
  readonly #n: number;
  readonly #frames: string[];
  readonly #first: number;

  constructor(n: number, frames: string[]) {
    this.#n = n;
    this.#frames = frames;
    this.#first = frames.length;
  }

  /** An event; `fields` is the JSON of its fields. */
  add(type: string, fields: string): void {
    this.#frames.push(`event: ${type}\ndata: {"type":"${type}",${fields},"sequence_number":${this.next}}\n\n`);
  }

  text(text: string): void {
    this.#frames.push(text);
  }

  /** The number of the next frame. */
  get next(): number {
    return sequenceNumber(this.#n, this.#frames.length - this.#first);
  }
}

/** One step of the projection. */
interface Step {
  readonly echo: Echo;
  readonly n: number;
  readonly frames: Frames;
}

/** The projection of a run whose answers repeat an `Echo`. */
export const responsesProjection = (echo: Echo): Projection<ResponsesState> => ({
  start,
  shared: false,
  project(state, line, n, frames) {
    const token = insideToken(line);
    // Nearly every event is a token of an open message. It makes no new state.
    if (token !== undefined && state.open !== undefined) {
      frames.push(delta(state.open, token, sequenceNumber(n, 0)));
      state.open.text.add(token);
      return state;
    }
    const step = { echo, n, frames: new Frames(n, frames) };
    if (token !== undefined) return addText(state, token, step);
    if (!endsMessage(line)) return afterEvent(state, JSON.parse(line), step);
    const finish_reason = finishReasonIn(line);
    const cutOff = cutOffOf({ finish_reason });
    return { ...closed(state, finish_reason === undefined ? 'completed' : 'incomplete', step), cutOff };
  },
});

function afterEvent(state: ResponsesState, event: Event, step: Step): ResponsesState {
  switch (event.type) {
    case 'message.created':
      // In what the agent says while the run awaits, a blank line is between two messages.
      return { ...state, said: 0, earlier: [], late: state.late === '' ? '' : `${state.late}\\n\\n` };
    case 'message.part':
      return addPart(state, event.part, step);
    case 'run.created':
      return begun({ ...state, run: event.run }, event.run.created_at, step);
    case 'run.in-progress':
      return working(state, event.run, step);
    case 'run.awaiting':
      return awaiting(state, event.run, step);
    case 'run.completed':
    case 'run.failed':
    case 'run.cancelled':
      return ended(state, event.run, step);
    case 'message.completed':
    case 'generic':
    case 'error':
      return state;
    default:
      event satisfies never;
      return state;
  }
}

/** A response begins. */
function begun(state: ResponsesState, time: string, { echo, n, frames }: Step): ResponsesState {
  const { run } = state;
  if (run === undefined) return state;
  const response: CurrentResponse = {
    id: responseId({ run_id: run.run_id, after: n - 1 }),
    previous: state.response?.id,
    created_at: seconds(time),
    completed_at: undefined,
    status: echo.background && n === 1 ? 'queued' : 'in_progress',
    model: run.agent_name,
    output: '',
    usage: undefined,
    error: undefined,
    items: 0,
    running: [],
    call_id: undefined,
  };
  frames.add('response.created', `"response":${responseObject(echo, response)}`);
  if (response.status === 'queued') frames.add('response.queued', `"response":${responseObject(echo, response)}`);
  return { ...state, response, open: undefined };
}

function working(before: ResponsesState, run: Run, step: Step): ResponsesState {
  const { await_resume, created_at } = run;
  const isNew = before.response !== undefined && isOver(before.response);
  const state = isNew ? begun(before, await_resume?.received_at ?? created_at, step) : before;
  if (state.response === undefined) return state;
  const response: CurrentResponse = { ...state.response, status: 'in_progress' };
  step.frames.add('response.in_progress', `"response":${responseObject(step.echo, response)}`);
  // Said while the run awaited: a message of its own, so that its frames fit into one event.
  return parted(addText({ ...state, response, late: '' }, state.late, step), step);
}

/** Adds text, the inside of a JSON string, to the message of the output; it begins one where none is open. */
function addText(state: ResponsesState, token: string, { n, frames }: Step): ResponsesState {
  const { response } = state;
  // An empty text is no reason for a message.
  if (response === undefined || (token === '' && state.open === undefined)) return state;
  if (isOver(response)) return { ...state, late: state.late + token };
  const open = state.open ?? opened(state, response, n, frames);
  frames.text(delta(open, token, frames.next));
  open.text.add(token);
  return { ...state, open };
}

const delta = ({ head }: OpenMessage, token: string, number: number): string =>
  `${head}${token}","logprobs":[],"sequence_number":${number}}\n\n`;

function opened({ run, said }: ResponsesState, { items }: CurrentResponse, n: number, frames: Frames): OpenMessage {
  const id = `msg_${run?.run_id}_${n}`;
  const place = `"item_id":"${id}","output_index":${items},"content_index":0`;
  frames.add('response.output_item.added', `"output_index":${items},"item":${messageItem(id, 'in_progress', '')}`);
  frames.add('response.content_part.added', `${place},"part":${textPart('', '')}`);
  const type = 'response.output_text.delta';
  const head = flat(`event: ${type}\ndata: {"type":"${type}",${place},"delta":"`);
  const text = new GrowingText();
  return { id, head, text, links: [], annotations: '', annotated: 0, shift: -said, from: said };
}

const itemOf = ({ id, text, annotations }: OpenMessage, status: 'completed' | 'incomplete'): string =>
  messageItem(id, status, textPart(text.whole, annotations));

/** Closes the message of the output. */
function closed(state: ResponsesState, status: 'completed' | 'incomplete', { frames }: Step): ResponsesState {
  const { open, response } = state;
  if (open === undefined || response === undefined) return state;
  const { id, annotations } = open;
  const text = open.text.whole;
  const index = `"output_index":${response.items}`;
  const place = `"item_id":"${id}",${index},"content_index":0`;
  const part = textPart(text, annotations);
  const item = itemOf(open, status);
  frames.add('response.output_text.done', `${place},"text":"${text}","logprobs":[]`);
  frames.add('response.content_part.done', `${place},"part":${part}`);
  frames.add('response.output_item.done', `${index},"item":${item}`);
  return { ...state, response: withItem(response, item), open: undefined, said: 0, earlier: [] };
}

/** Closes the message of the output before an item of another type; the agent's message goes on after that. */
function parted(state: ResponsesState, step: Step): ResponsesState {
  const { open, response, earlier } = state;
  if (open === undefined || response === undefined) return state;
  return {
    ...closed(state, 'completed', step),
    said: open.text.chars - open.shift,
    earlier: [...earlier.slice(1 - maxEarlier), { ...open, index: response.items }],
  };
}

function withItem(response: CurrentResponse, item: string): CurrentResponse {
  const { output, items } = response;
  return { ...response, output: items === 0 ? item : `${output},${item}`, items: items + 1 };
}

function addPart(state: ResponsesState, part: MessagePart, step: Step): ResponsesState {
  if (state.response === undefined) return state;
  const kind = kindOf(part);
  // The response that the agent has ended with its question takes no more items; its text waits for the next one.
  const isLate = isOver(state.response);
  switch (kind.kind) {
    case 'text':
      return addText(state, insideOf(kind.text), step);
    case 'data':
      return addText(state, insideOf(textOf(kind.part)), step);
    case 'citation': {
      const cited = addText(state, insideOf(kind.text), step);
      return isLate || kind.citation.url === undefined ? cited : annotated(cited, kind.citation, step);
    }
    case 'file': {
      const image = imageBytes(kind);
      if (image !== undefined && !isLate) {
        const shown = added(parted(state, step), step, imageCall(image, kind.mediaType));
        return { ...shown, said: shown.said + textOf(part).length };
      }
      const link = linkTo(kind);
      const linked = addText(state, insideOf(link), step);
      const { open } = linked;
      if (open === undefined) return linked;
      const { length } = textOf(part);
      const more = link.length - length;
      const at = open.text.chars - link.length - open.shift;
      const links = withLink(open.links, { at, chars: length, more });
      return { ...linked, open: { ...open, links, shift: open.shift + more } };
    }
    case 'reasoning':
      return isLate ? state : added(parted(state, step), step, reasoning(kind.text));
    case 'tool':
      if (isLate) return { ...state, calls: toolChange(state.calls, kind.call, step.n).open };
      return withTool(parted(state, step), kind.call, step);
    default:
      return kind satisfies never;
  }
}

/** Adds what a part says of a call. An item keeps its place while it is in progress. */
function withTool(before: ResponsesState, part: TrajectoryMetadata, step: Step): ResponsesState {
  const { call, begins, result, open } = toolChange(before.calls, part, step.n);
  const known = before.response?.running.some((one) => one.call.begun === call.begun) === true;
  const state = { ...before, calls: open };
  // A call that began in an earlier response, before a question, is an item of this one when its result comes.
  const begun = begins || (!known && result !== undefined) ? toolBegun(state, call, step) : state;
  return result === undefined
    ? begun
    : toolEnded(begun, call, result.tool_error === undefined ? 'completed' : 'failed', result, step);
}

function toolBegun(state: ResponsesState, call: OpenCall, { n, frames }: Step): ResponsesState {
  const { run, response } = state;
  if (response === undefined) return state;
  const id = `mcp_${run?.run_id}_${n}`;
  const item = toolCall(id, call, response.model, 'in_progress');
  const place = `"item_id":"${id}","output_index":${response.items}`;
  frames.add(
    'response.output_item.added',
    `"output_index":${response.items},"item":${toLine({ ...item, arguments: '' })}`,
  );
  frames.add('response.mcp_call_arguments.delta', `${place},"delta":${toLine(item.arguments)}`);
  frames.add('response.mcp_call_arguments.done', `${place},"arguments":${toLine(item.arguments)}`);
  const text = toLine(item);
  const running = [...response.running, { call, id, index: response.items, text }];
  return { ...state, response: { ...withItem(response, text), running } };
}

function toolEnded(
  state: ResponsesState,
  call: OpenCall,
  status: 'completed' | 'failed' | 'incomplete',
  result: ToolResult,
  { frames }: Step,
): ResponsesState {
  const { response } = state;
  const item = response?.running.find((one) => one.call.begun === call.begun);
  if (response === undefined || item === undefined) return state;
  const { id, index, text } = item;
  const whole = toLine(toolCall(id, call, response.model, status, result));
  if (status !== 'incomplete') frames.add(`response.mcp_call.${status}`, `"item_id":"${id}","output_index":${index}`);
  frames.add('response.output_item.done', `"output_index":${index},"item":${whole}`);
  const running = response.running.filter((one) => one !== item);
  return { ...state, response: { ...response, running, output: response.output.replace(text, () => whole) } };
}

/** Closes the items of calls that have no result yet. */
function toolsLeft(before: ResponsesState, step: Step): ResponsesState {
  const running = before.response?.running ?? [];
  return running.reduce((state, { call }) => toolEnded(state, call, 'incomplete', {}, step), before);
}

function annotated(before: ResponsesState, citation: CitationMetadata, step: Step): ResponsesState {
  const { response } = before;
  if (response === undefined) return before;
  const earlier = earlierOf(before, citation);
  if (earlier === undefined) {
    const open = before.open ?? opened(before, response, step.n, step.frames);
    return { ...before, open: withAnnotation(open, citation, response.items, Number.POSITIVE_INFINITY, step) };
  }
  const now = withAnnotation(earlier, citation, earlier.index, earlier.text.chars, step);
  const output = response.output.replace(itemOf(earlier, 'completed'), () => itemOf(now, 'completed'));
  return {
    ...before,
    earlier: before.earlier.map((one) => (one === earlier ? now : one)),
    response: { ...response, output },
  };
}

/** The finished message in which a cited text begins, where that ends before the open one. */
function earlierOf({ said, earlier }: ResponsesState, citation: CitationMetadata): EarlierMessage | undefined {
  const { start_index: start = 0, end_index: end = start } = citation;
  return start < said && end <= said ? earlier.findLast(({ from }) => from <= start) : undefined;
}

/** Adds a citation to the message with an index; its text ends at `longest`. */
function withAnnotation<Message extends OpenMessage>(
  message: Message,
  citation: CitationMetadata,
  index: number,
  longest: number,
  { frames }: Step,
): Message {
  const { id, links, shift, annotated, annotations } = message;
  const annotation = toLine(urlCitation(citation, (at, edge) => Math.min(longest, placeOf(links, at, edge, shift))));
  const place = `"item_id":"${id}","output_index":${index},"content_index":0`;
  frames.add(
    'response.output_text.annotation.added',
    `${place},"annotation_index":${annotated},"annotation":${annotation}`,
  );
  const all = annotated === 0 ? annotation : `${annotations},${annotation}`;
  return { ...message, annotations: all, annotated: annotated + 1 };
}

function added(state: ResponsesState, { n, frames }: Step, item: WholeItem): ResponsesState {
  const { run, response } = state;
  if (response === undefined) return state;
  const id = `${item.prefix}_${run?.run_id}_${n}`;
  const index = `"output_index":${response.items}`;
  const whole = toLine({ id, ...item.whole });
  frames.add('response.output_item.added', `${index},"item":${toLine({ id, ...item.whole, ...item.begins })}`);
  for (const [type, fields] of item.between) {
    const more = toLine(fields).slice(1, -1);
    frames.add(type, `"item_id":"${id}",${index}${more === '' ? '' : `,${more}`}`);
  }
  frames.add('response.output_item.done', `${index},"item":${whole}`);
  return { ...state, response: withItem(response, whole) };
}

/** The question becomes a call that the client answers. The response is complete. */
function awaiting(before: ResponsesState, { await_request: request, usage: told }: Run, step: Step): ResponsesState {
  const { run } = before;
  if (run === undefined || request === undefined) return before;
  const { name, arguments: args } = callOfQuestion(request, step.echo.tools);
  const call_id = callId(run.run_id, step.n);
  const state = added(toolsLeft(closed(before, 'completed', step), step), step, {
    prefix: 'fc',
    begins: { status: 'in_progress', arguments: '' },
    between: [
      ['response.function_call_arguments.delta', { delta: args }],
      ['response.function_call_arguments.done', { name, arguments: args }],
    ],
    whole: { type: 'function_call', status: 'completed', call_id, name, arguments: args },
  });
  const asked_at = request.message.created_at ?? run.created_at;
  const usage = usageAfter(before.told, told);
  return finished({ ...state, told }, { status: 'completed', completed_at: seconds(asked_at), usage, call_id }, step);
}

function ended(before: ResponsesState, { status, error, usage, finished_at }: Run, step: Step): ResponsesState {
  if (before.response === undefined) return before;
  // Cancelled or failed while it awaited: that response was complete, and no answer is needed any more.
  if (isOver(before.response)) return { ...before, response: { ...before.response, call_id: undefined } };
  const state = toolsLeft(closed(before, status === 'completed' ? 'completed' : 'incomplete', step), step);
  const outcome = outcomeOf(status, before.cutOff);
  return finished(
    state,
    {
      status: outcome,
      cutOff: outcome === 'incomplete' ? before.cutOff : undefined,
      completed_at: status === 'completed' && finished_at !== undefined ? seconds(finished_at) : undefined,
      usage: usageAfter(before.told, usage),
      error: error && responseError(error),
    },
    step,
  );
}

function outcomeOf(status: RunStatus, cutOff: CutOff | undefined): ResponseStatus {
  if (status === 'completed') return cutOff === undefined ? status : 'incomplete';
  return status === 'failed' ? status : 'cancelled';
}

/** There is no `response.cancelled`. Clients take `response.incomplete`, and read the status. */
const finalEvents: Readonly<Record<ResponseStatus, string>> = {
  queued: 'response.incomplete',
  in_progress: 'response.incomplete',
  completed: 'response.completed',
  incomplete: 'response.incomplete',
  failed: 'response.failed',
  cancelled: 'response.incomplete',
};

function finished(state: ResponsesState, outcome: Partial<CurrentResponse>, { echo, frames }: Step): ResponsesState {
  if (state.response === undefined) return state;
  const response: CurrentResponse = { ...state.response, ...outcome };
  frames.add(finalEvents[response.status], `"response":${responseObject(echo, response)}`);
  frames.text('data: [DONE]\n\n');
  return { ...state, response };
}
