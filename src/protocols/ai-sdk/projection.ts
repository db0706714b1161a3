import { type CutOff, cutOffOf } from '../../core/cut-off.ts';
import { flat } from '../../core/encode.ts';
import { parsedWithout } from '../../core/json.ts';
import { questionText, textOf } from '../../core/parts.ts';
import { tokenIn } from '../../core/recognize.ts';
import { valueTextOf } from '../../core/reply.ts';
import { type OpenCall, type ToolResult, toolChange, withoutResult } from '../../core/tool-calls.ts';
import type { Projection } from '../../http/sse/projection.ts';
import type { Event } from '../../schema/event.ts';
import type { FinishReason, Message, MessagePart } from '../../schema/message.ts';
import type { AwaitRequest, AwaitResume, Run } from '../../schema/run.ts';
import { isYesOrNo, jsonIn, kindOf } from '../part-kinds.ts';
import { failureCode, failureOf } from '../run-errors.ts';

/** A chunk of the UI message stream, with only the properties that every version of the AI SDK from 5 on accepts. */
export interface Chunk {
  readonly type: string;
  readonly [property: string]: unknown;
}

/** What a log leaves open. */
export interface Open {
  readonly run_id: string;
  readonly text?: OpenText | undefined;
  /** `fresh`: the open step has no message yet. */
  readonly step?: 'fresh' | 'open' | undefined;
  readonly asked?: Asked | undefined;
  /** Calls of the agent's tools that have no result yet. */
  readonly calls?: readonly OpenCall[];
  /** Why the last message is not whole. */
  readonly cutOff?: CutOff;
  /** What the agent has said since it asked. */
  readonly held?: Held | undefined;
  /** How the run has settled; undefined while it goes on. */
  readonly settled?: (Pick<Run, 'status' | 'usage'> & { readonly finish_reason?: CutOff }) | undefined;
}

interface Asked {
  readonly toolCallId: string;
  readonly dynamic: boolean;
  readonly approval: boolean;
}

/** An event, and the ones before it: a list that grows without a copy. */
interface Held {
  readonly event: Event;
  readonly n: number;
  readonly before: Held | undefined;
}

export const nothingOpen: Open = { run_id: '' };

/** The name of the tool that a question looks like, unless the agent asks for a tool of the client. */
export const awaitTool = 'await';

/**
 * The id of a question as a tool call. It has the id of the run, because a chat looks for the tool call that it answers
 * in all of its messages.
 */
export const callIdOf = (run_id: string, question = ''): string => `${run_id}:q${question}`;

/** A text that has not ended. Its tokens have the same line up to the token, so that is made once. */
interface OpenText {
  readonly id: string;
  readonly head: string;
}

/** The text that begins with an event. */
const textFrom = (n: number): OpenText => ({
  id: `t${n}`,
  head: flat(`data: {"type":"text-delta","id":"t${n}","delta":`),
});

/**
 * The event of a line, without keys that could change a prototype, as a tool may return them: the AI SDK refuses a stream
 * that has one, and this server the chat's next request.
 */
export const eventIn = (line: string): Event => parsedWithout<Event>(line, () => undefined);

interface Step {
  readonly open: Open;
  readonly chunks: readonly Chunk[];
}

/**
 * Adds an event to what is open, and returns the chunks that follow from it. A pure fold. A stream ends at a question, and
 * the one of the reply begins at its reply: what an agent says in between follows the reply, so that both are complete.
 */
export function chunksOf(open: Open, event: Event, n: number, approvals: boolean): Step {
  if (open.asked !== undefined && !('run' in event)) {
    return { open: { ...open, held: { event, n, before: open.held } }, chunks: [] };
  }
  switch (event.type) {
    case 'message.part':
      return partChunks(open, event.part, n);
    case 'message.created':
      return open.step === undefined
        ? { open: { ...open, step: 'open' }, chunks: [{ type: 'start-step' }] }
        : { open: { ...open, step: 'open' }, chunks: [] };
    case 'message.completed':
      return completed(open, event.message);
    case 'generic':
      return { open, chunks: [dataChunk('data-generic', event.generic, n)] };
    case 'run.created':
      return { open: { run_id: event.run.run_id }, chunks: [start(event.run)] };
    case 'run.in-progress':
      return open.asked === undefined ? { open, chunks: [] } : continued(open, open.asked, event.run);
    case 'run.awaiting':
      return asked(open, event.run, approvals);
    case 'run.completed':
    case 'run.failed':
    case 'run.cancelled':
      return ended(open, event.run);
    case 'error':
      return { open, chunks: [] };
    default:
      event satisfies never;
      return { open, chunks: [] };
  }
}

const start = ({ run_id, session_id, created_at }: Run): Chunk => ({
  type: 'start',
  messageId: run_id,
  messageMetadata: { run_id, session_id, created_at },
});

/** Text closes before parts that are drawn apart from it; a citation belongs to the text around it. */
function partChunks(open: Open, part: MessagePart, n: number): Step {
  const is = kindOf(part);
  if (is.kind === 'text') return withText(open, is.text, n);
  if (is.kind === 'citation') {
    const before = is.text === '' ? { open, chunks: [] } : withText(open, is.text, n);
    return { open: before.open, chunks: [...before.chunks, citationChunk(is.citation, n)] };
  }
  const before = closedText(open);
  const also = (...chunks: Chunk[]): Step => ({ open: before.open, chunks: [...before.chunks, ...chunks] });
  switch (is.kind) {
    case 'reasoning': {
      const id = `r${n}`;
      return also(
        { type: 'reasoning-start', id },
        { type: 'reasoning-delta', id, delta: is.text },
        { type: 'reasoning-end', id },
      );
    }
    case 'tool': {
      // As executed by the provider: a chat would look for tools of its own otherwise, and send their results.
      const { call, begins, result, open: calls } = toolChange(open.calls ?? [], is.call, n);
      const begun = begins ? [callChunk(open, call)] : [];
      const before = also(...begun, ...(result === undefined ? [] : [resultChunk(open, call, result)]));
      return { ...before, open: { ...before.open, calls } };
    }
    case 'file': {
      const { mediaType, url, name } = is;
      return also({ type: 'file', mediaType, url, ...(name !== undefined && { providerMetadata: rivulet({ name }) }) });
    }
    case 'data':
      return also(dataChunk('data-part', is.part, n));
    default:
      return is satisfies never;
  }
}

/** With the id that the agent has given: a chat replaces the earlier data with that. */
const dataChunk = (type: string, data: object, n: number): Chunk => {
  const id = 'id' in data ? data.id : undefined;
  return { type, id: typeof id === 'string' && id !== '' ? id : `e${n}`, data };
};

const idOf = ({ run_id }: Open, { begun }: OpenCall) => ({
  toolCallId: `${run_id}:e${begun}`,
  providerExecuted: true,
  dynamic: true,
});

const callChunk = (open: Open, call: OpenCall): Chunk => ({
  type: 'tool-input-available',
  ...idOf(open, call),
  toolName: call.name,
  input: call.tool_input,
});

const resultChunk = (open: Open, call: OpenCall, { tool_error, tool_output = {} }: ToolResult): Chunk =>
  tool_error === undefined
    ? { type: 'tool-output-available', ...idOf(open, call), output: tool_output }
    : { type: 'tool-output-error', ...idOf(open, call), errorText: tool_error };

/** What the protocol has no field for. */
const rivulet = (more: object): object => ({ rivulet: more });

function citationChunk({ kind: _, url, title, ...rest }: { readonly [field: string]: unknown }, n: number): Chunk {
  if (typeof url !== 'string') {
    return { type: 'data-citation', id: `e${n}`, data: { ...rest, title } };
  }
  return {
    type: 'source-url',
    sourceId: `e${n}`,
    url,
    title,
    ...(Object.keys(rest).length > 0 && { providerMetadata: rivulet(rest) }),
  };
}

function withText(open: Open, delta: string, n: number): Step {
  if (open.text !== undefined) return { open, chunks: [{ type: 'text-delta', id: open.text.id, delta }] };
  const text = textFrom(n);
  const { id } = text;
  return {
    open: { ...open, text },
    chunks: [
      { type: 'text-start', id },
      { type: 'text-delta', id, delta },
    ],
  };
}

/** The last message that was cut off says why at the end of the stream as well. */
function completed({ cutOff: _, ...open }: Open, message: Message): Step {
  const cutOff = cutOffOf(message);
  return closed({ ...open, ...(cutOff && { cutOff }) }, message.finish_reason);
}

function closedText(open: Open, reason?: FinishReason): Step {
  if (open.text === undefined) return { open, chunks: [] };
  const marked = reason && { providerMetadata: rivulet({ finish_reason: reason }) };
  return { open: { ...open, text: undefined }, chunks: [{ type: 'text-end', id: open.text.id, ...marked }] };
}

function closed(open: Open, reason?: FinishReason): Step {
  const text = closedText(open, reason);
  if (open.step === undefined) return text;
  return { open: { ...text.open, step: undefined }, chunks: [...text.chunks, { type: 'finish-step' }] };
}

/** A question is a tool call without a result, in a step of its own. */
function asked(open: Open, { status, usage, await_request }: Run, approvals: boolean): Step {
  const before = closed(open);
  const settled = { status, ...(usage && { usage }) };
  if (await_request === undefined) return { open: { ...before.open, settled }, chunks: before.chunks };
  const toolCallId = callIdOf(open.run_id, await_request.id);
  const { tool } = await_request;
  const dynamic = tool === undefined;
  const approval = approvals && dynamic && isYesOrNo(await_request);
  return {
    open: { ...before.open, asked: { toolCallId, dynamic, approval }, settled },
    chunks: [
      ...before.chunks,
      { type: 'start-step' },
      {
        type: 'tool-input-available',
        toolCallId,
        toolName: tool?.name ?? awaitTool,
        input: tool === undefined ? questionInput(await_request) : (tool.input ?? {}),
        ...(dynamic && { dynamic }),
      },
      ...(approval ? [{ type: 'tool-approval-request', approvalId: toolCallId, toolCallId }] : []),
      { type: 'finish-step' },
    ],
  };
}

function questionInput(request: AwaitRequest): object {
  const { schema, expires_at } = request;
  return { message: questionText(request), schema, expires_at };
}

/**
 * The run goes on after a question. The chunks begin as those of a run, because a chat reads them as a stream of their
 * own. The new step is for the chat, too: it would send the reply again if its last step still had the question.
 */
function continued(open: Open, question: Asked, run: Run): Step {
  const chunks = [start({ ...run, run_id: open.run_id }), answer(question, run.await_resume), { type: 'start-step' }];
  return released({ ...open, settled: undefined, step: 'fresh' }, chunks);
}

/** Ends a question with some chunks, and adds what was said since. */
function released({ held, ...open }: Open, chunks: readonly Chunk[]): Step {
  const events: Held[] = [];
  for (let one = held; one !== undefined; one = one.before) events.push(one);
  let step: Step = { open: { ...open, asked: undefined }, chunks: [] };
  const all = [...chunks];
  for (const { event, n } of events.reverse()) {
    step = chunksOf(step.open, event, n, false);
    all.push(...step.chunks);
  }
  return { open: step.open, chunks: all };
}

function answer({ toolCallId, dynamic, approval }: Asked, reply: AwaitResume | undefined): Chunk {
  const call = { toolCallId, ...(dynamic && { dynamic }) };
  if (reply === undefined) return { type: 'tool-output-error', ...call, errorText: 'The question was withdrawn.' };
  const output = replyValue(reply.message);
  // Only clients of version 6 and newer are asked for approvals, and know this chunk.
  if (approval && String(output) === 'false') return { type: 'tool-output-denied', toolCallId };
  return { type: 'tool-output-available', ...call, output };
}

/** What a reply says: its JSON part, or its text. */
function replyValue(message: Message): unknown {
  const { text, index } = valueTextOf(message);
  const given = index === undefined ? undefined : jsonIn(text);
  return given === undefined ? textOf(message) : given.value;
}

function ended(open: Open, run: Run): Step {
  const { status, usage } = run;
  const withdrawn = open.asked && [start({ ...run, run_id: open.run_id }), answer(open.asked, undefined)];
  const told = withdrawn === undefined ? { open, chunks: [] } : released(open, withdrawn);
  const before = closed(told.open);
  const { cutOff } = before.open;
  const { calls = [] } = told.open;
  const chunks = [
    ...told.chunks,
    ...calls.map((call) => resultChunk(told.open, call, withoutResult(status))),
    ...before.chunks,
  ];
  if (status === 'cancelled') chunks.push({ type: 'abort' });
  if (status === 'failed') {
    const error = failureOf(run);
    const { message } = error;
    const metadata = { status, error: { code: failureCode(error), message } };
    chunks.push({ type: 'message-metadata', messageMetadata: metadata }, { type: 'error', errorText: message });
  }
  return {
    open: { ...before.open, settled: { status, ...(usage && { usage }), ...(cutOff && { finish_reason: cutOff }) } },
    chunks,
  };
}

/** The chunk at the end of a stream. Clients that count chunks would ask again without it, also after an error. */
export function finishOf({ settled }: Open): Chunk | undefined {
  return settled === undefined ? undefined : { type: 'finish', messageMetadata: settled };
}

/** A frame's id is the cursor `<event>.<chunk>`: the place after it. */
const frame = (n: number, chunk: number, json: string): string => `data: ${json}\nid: ${n}.${chunk}\n\n`;

/** What a reader of the stream asks for. */
interface Options {
  /** Yes-or-no questions are asked for as approvals, which clients know from version 6 on. */
  readonly approvals: boolean;
  /**
   * Tokens of a batch are joined to chunks of some hundred. A chat takes as long for a chunk of one token as for one of a hundred, and a page
   * that loads gets thousands at once. Not for clients that count chunks.
   */
  readonly joins: boolean;
}

/** The end of a text chunk and of its text, before the id. */
const textEnd = '"}\nid: ';
/** Characters up to which a chunk takes more tokens: each copies it. */
const joinedChars = 1_000;

/** The frame of a token: another one, or the last one with the token as well, where that is of the same text. */
function addToken(frames: string[], n: number, head: string, token: string, joins: boolean): void {
  const last = joins ? frames.at(-1) : undefined;
  if (last !== undefined && last.length < joinedChars && last.startsWith(head)) {
    frames[frames.length - 1] = `${last.slice(0, last.lastIndexOf(textEnd))}${token.slice(1)}}\nid: ${n}.1\n\n`;
  } else frames.push(`${head}${token}}\nid: ${n}.1\n\n`);
}

/** A log as a UI message stream. Tokens, most of a log, are neither parsed nor encoded again. */
const streamOf = ({ approvals, joins }: Options): Projection<Open> => ({
  start: nothingOpen,
  shared: true,
  project(open, line, n, frames) {
    const token = open.asked === undefined ? tokenIn(line) : undefined;
    if (token === undefined) {
      const step = chunksOf(open, eventIn(line), n, approvals);
      let count = 0;
      for (const chunk of step.chunks) {
        count += 1;
        frames.push(frame(n, count, JSON.stringify(chunk)));
      }
      return step.open;
    }
    if (open.text !== undefined) {
      addToken(frames, n, open.text.head, token, joins);
      return open;
    }
    const text = textFrom(n);
    frames.push(frame(n, 1, `{"type":"text-start","id":"${text.id}"}`), `${text.head}${token}}\nid: ${n}.2\n\n`);
    return { ...open, text };
  },
});

export const uiStream = streamOf({ approvals: false, joins: false });
export const uiStreamWithApprovals = streamOf({ approvals: true, joins: false });
const joinedStream = streamOf({ approvals: false, joins: true });
const joinedStreamWithApprovals = streamOf({ approvals: true, joins: true });

/** The same projection for all readers that ask for the same, so that they share its frames. */
export function uiStreamFor({ approvals, joins }: Options): Projection<Open> {
  if (joins) return approvals ? joinedStreamWithApprovals : joinedStream;
  return approvals ? uiStreamWithApprovals : uiStream;
}

/**
 * The frames at a clean end. They have no id, and so no place in the log: a question that has its reply is not the end
 * of a stream that is read later.
 */
export function endOf(open: Open): string {
  const finish = finishOf(open);
  return `${finish === undefined ? '' : `data: ${JSON.stringify(finish)}\n\n`}data: [DONE]\n\n`;
}
