import { flat, toLine } from '../../core/encode.ts';
import { questionText, stateChangeOf } from '../../core/parts.ts';
import { tokenIn } from '../../core/recognize.ts';
import { type OpenCall, toolChange, withoutResult } from '../../core/tool-calls.ts';
import { usageAfter } from '../../core/usage.ts';
import { frameId, type Projection } from '../../http/sse/projection.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Event, RunEvent } from '../../schema/event.ts';
import type { FinishReason, MessagePart, TrajectoryMetadata } from '../../schema/message.ts';
import type { AwaitRequest, Run, RunUsage } from '../../schema/run.ts';
import { isYesOrNo, kindOf } from '../part-kinds.ts';
import { cancelledText, failureOf } from '../run-errors.ts';

/** What frames say of the request that they answer. */
export interface AgUiRun {
  readonly threadId: string;
  readonly runId: string;
  /** Whether the client reads what 1.0 has added. */
  readonly modern: boolean;
  /** The names of the tools that the client runs. */
  readonly tools: readonly string[];
  /** Whether the request itself cancels the run: to its client, that is no error. */
  readonly cancels?: boolean;
}

interface State {
  readonly run_id: string;
  /** Whether RUN_STARTED was sent, and not its end. The run awaits, or has no event yet, where it is not. */
  readonly started: boolean;
  /** The text that is open: its id, and its frames up to the token. */
  readonly text?: { readonly id: string; readonly head: string };
  /** The text that ended just now: the call of a tool that follows it is in the same message. */
  readonly before?: string;
  /** Calls of the agent's tools that have no result yet. */
  readonly calls?: readonly OpenCall[];
  /** The usage of the run that was told to its clients so far. */
  readonly told?: RunUsage | undefined;
}

/** The `data` of one frame. The ids of messages, calls and interrupts are the run's id and the number of their event. */
export const runStarted = ({ threadId, runId, modern }: AgUiRun, run_id: string): string =>
  toLine({
    type: 'RUN_STARTED',
    threadId,
    runId,
    ...(modern && { protocolVersion: '1.0' }),
    metadata: { run_id },
  });

/** The event at which TanStack AI runs a tool of its own. */
export const toolAvailable = 'tool-input-available';

/** A run's error as an event of the protocol: what the agent or the server calls it, and its text. */
export const runError = ({ code, message, data }: ErrorBody): { type: string; message: string; code: string } => {
  const own = data?.code ?? data?.reason;
  return { type: 'RUN_ERROR', message, code: typeof own === 'string' ? own : code };
};

/**
 * A frame. Its id comes first, unlike in other protocols: TanStack AI takes an event when it reads `data`, with the id that it
 * has read by then.
 */
export const frameOf = (id: number | string, data: string): string => `id: ${id}\n${prefix}${data}\n\n`;

const prefix = 'data: ';

export const dataOf = (frame: string): string => frame.slice(frame.indexOf('\n') + 1 + prefix.length, -2);

/**
 * A log as the events of AG-UI. A frame's SSE id is the number of its event; where the event has several frames, those
 * before the last have `n.1`, `n.2`, …: a reader goes on after any of them.
 */
export function agUiFrames(request: AgUiRun): Projection<State> {
  return {
    start: { run_id: '', started: false },
    // They name the thread and the run of one request.
    shared: false,
    project(state, line, n, frames) {
      const token = tokenIn(line);
      if (token !== undefined && state.text !== undefined && state.started) {
        frames.push(frameOf(n, `${state.text.head}${token}}`));
        return state;
      }
      const group = new Group(request, state, n);
      if (token === undefined) group.add(JSON.parse(line));
      else group.token(token);
      group.write(frames);
      return group.state;
    },
  };
}

/** The frames of one event. */
class Group {
  readonly #request: AgUiRun;
  readonly #n: number;
  readonly #data: string[] = [];
  state: State;

  constructor(request: AgUiRun, state: State, n: number) {
    this.#request = request;
    this.#n = n;
    this.state = state;
  }

  write(frames: string[]): void {
    const last = this.#data.length;
    for (const [index, data] of this.#data.entries()) {
      frames.push(frameOf(frameId(this.#n, index, last), data));
    }
  }

  add(event: Event): void {
    if ('run' in event) {
      this.#run(event);
      return;
    }
    switch (event.type) {
      case 'message.created':
      case 'message.completed':
        this.#close(event.message.finish_reason);
        this.state = { ...this.state, before: undefined };
        return;
      case 'message.part':
        this.#part(event.part);
        return;
      case 'generic':
        this.#generic(event.generic);
        return;
      case 'error':
        return;
      default:
        event satisfies never;
    }
  }

  /** Adds a token, which is JSON already. */
  token(token: string): void {
    if (this.state.text === undefined) {
      const id = this.#id;
      this.#push({ type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' });
      this.state = { ...this.state, text: { id, head: headOf(id) }, before: undefined };
    }
    this.#begin();
    this.#data.push(`${this.state.text?.head}${token}}`);
  }

  get #id(): string {
    return `${this.state.run_id}.${this.#n}`;
  }

  #push(event: object): void {
    this.#begin();
    this.#data.push(toLine(event));
  }

  /** An agent may go on while it awaits; the client's next request is another run to it. */
  #begin(): void {
    if (this.state.started) return;
    this.#data.push(runStarted(this.#request, this.state.run_id));
    this.state = { ...this.state, started: true };
  }

  #end(event: object): void {
    this.#close();
    this.#push(event);
    const { run_id, told, calls } = this.state;
    this.state = { run_id, started: false, told, ...(calls && { calls }) };
  }

  /** Clients put the metadata of this event into the message, and post it back: the agent gets it again; see `inputOf`. */
  #close(finish_reason?: FinishReason): void {
    const { text } = this.state;
    if (text === undefined) return;
    const marked = finish_reason && { metadata: { finish_reason } };
    this.#push({ type: 'TEXT_MESSAGE_END', messageId: text.id, ...marked });
    this.state = { ...this.state, text: undefined, before: text.id };
  }

  #part(part: MessagePart): void {
    const known = kindOf(part);
    switch (known.kind) {
      case 'text':
        this.token(toLine(known.text));
        return;
      case 'citation': {
        if (known.text !== '') this.token(toLine(known.text));
        const { text } = this.state;
        this.#custom('rivulet.citation', { ...(text && { messageId: text.id }), ...known.citation });
        return;
      }
      case 'tool': {
        this.#close();
        const { call, begins, result, open } = toolChange(this.state.calls ?? [], known.call, this.#n);
        if (begins) this.#call(this.#id, call.name, call.tool_input);
        if (result !== undefined) this.#result(call, resultOf({ ...known.call, ...result }));
        this.state = { ...this.state, calls: open };
        return;
      }
      case 'reasoning':
        this.#close();
        this.#reasoning(known.text);
        return;
      case 'file':
      case 'data':
        this.#custom('rivulet.part', part);
        return;
      default:
        known satisfies never;
    }
  }

  #call(toolCallId: string, toolCallName: string, input: object = {}): void {
    const { before } = this.state;
    this.#push({ type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId: before });
    this.#push({ type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(input) });
    this.#push({ type: 'TOOL_CALL_END', toolCallId });
    this.state = { ...this.state, before: undefined };
  }

  #result({ begun }: OpenCall, content: string): void {
    const toolCallId = `${this.state.run_id}.${begun}`;
    this.#push({ type: 'TOOL_CALL_RESULT', messageId: `${toolCallId}.result`, toolCallId, content, role: 'tool' });
  }

  #reasoning(text: string): void {
    const messageId = this.#id;
    this.#push({ type: 'REASONING_START', messageId });
    this.#push({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' });
    this.#push({ type: 'REASONING_MESSAGE_CONTENT', messageId, delta: text });
    this.#push({ type: 'REASONING_MESSAGE_END', messageId });
    this.#push({ type: 'REASONING_END', messageId });
    this.state = { ...this.state, before: undefined };
  }

  #generic(generic: Readonly<Record<string, unknown>>): void {
    const change = stateChangeOf(generic);
    if (change === undefined) {
      this.#custom(typeof generic.kind === 'string' ? generic.kind : 'rivulet.generic', generic);
    } else if ('state' in change) this.#push({ type: 'STATE_SNAPSHOT', snapshot: change.state });
    else this.#push({ type: 'STATE_DELTA', delta: change.patch });
  }

  #custom(name: string, value: object): void {
    this.#push({ type: 'CUSTOM', name, value });
  }

  #run(event: RunEvent): void {
    const { run } = event;
    this.state = { ...this.state, run_id: run.run_id };
    switch (event.type) {
      case 'run.awaiting':
        if (run.await_request !== undefined) this.#ask(run.await_request, run);
        return;
      case 'run.completed':
        this.#endCalls(run);
        this.#finish(run, this.#request.modern ? { type: 'success' } : undefined);
        return;
      case 'run.cancelled':
        this.#endCalls(run);
        this.#close('cancelled');
        this.#cancelled(run);
        return;
      case 'run.failed':
        this.#endCalls(run);
        this.#close('failed');
        this.#end({ ...runError(failureOf(run)), ...this.#usageOf(run) });
        return;
      case 'run.created':
      case 'run.in-progress':
        // The first event of a run, or of what follows a reply, reaches the client at once: it has an id to resume with.
        this.#begin();
        return;
      default:
        event.type satisfies never;
    }
  }

  /** A call without a result would look like a call that the client has to answer. */
  #endCalls({ status }: Run): void {
    const { calls = [] } = this.state;
    for (const call of calls) this.#result(call, resultOf(withoutResult(status)));
    this.state = { ...this.state, calls: [] };
  }

  #cancelled(run: Run): void {
    const { modern, cancels = false } = this.#request;
    if (modern) this.#finish(run, { type: 'cancelled' });
    else if (cancels) this.#finish(run, undefined);
    else {
      const message = cancelledText(run.cancel_reason);
      this.#end({ type: 'RUN_ERROR', message, code: 'cancelled', ...this.#usageOf(run) });
    }
  }

  /**
   * A tool that the client has is a call without a result: the client runs it, and posts the result as a message of its next
   * run. Any other question is an interrupt, which the next run of the client has to answer.
   */
  #ask(asked: AwaitRequest, run: Run): void {
    const { modern, tools } = this.#request;
    this.#close();
    if (asked.tool !== undefined && tools.includes(asked.tool.name)) {
      const { name, input = {} } = asked.tool;
      this.#call(this.#id, name, input);
      // Other clients run their tools at the end of the run.
      this.#custom(toolAvailable, { toolCallId: this.#id, toolName: name, input });
      this.#finish(run, modern ? { type: 'success', pendingToolCallIds: [this.#id] } : undefined);
      return;
    }
    const interrupt = {
      id: this.#id,
      reason: isYesOrNo(asked) ? 'confirmation' : 'input_required',
      message: questionText(asked),
      responseSchema: asked.schema,
      expiresAt: asked.expires_at,
    };
    this.#finish(run, { type: 'interrupt', interrupts: [interrupt] });
  }

  /** What the run has used since the last end of a client's run. */
  #usageOf({ usage }: Run): object {
    const { told } = this.state;
    this.state = { ...this.state, told: usage };
    return usageOf(usageAfter(told, usage));
  }

  #finish(run: Run, outcome: object | undefined): void {
    const { threadId, runId } = this.#request;
    this.#end({ type: 'RUN_FINISHED', threadId, runId, outcome, ...this.#usageOf(run) });
  }
}

const headOf = (id: string): string => flat(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"${id}","delta":`);

/** The result of a tool as text: a call without one would look like a call that the client has to answer. */
const resultOf = ({ tool_output, tool_error, message = '' }: Omit<TrajectoryMetadata, 'kind'>): string =>
  tool_error !== undefined
    ? JSON.stringify({ error: tool_error })
    : tool_output
      ? JSON.stringify(tool_output)
      : message;

/** Counts are whole numbers in this protocol. */
function usageOf(usage: RunUsage | undefined): object {
  if (usage === undefined) return {};
  const { tokens, input_tokens, output_tokens } = usage;
  const counts = { totalTokens: tokens, inputTokens: input_tokens, outputTokens: output_tokens };
  const whole = Object.entries(counts).flatMap(([name, count]) =>
    count === undefined ? [] : [[name, Math.round(count)]],
  );
  return { usage: [Object.fromEntries(whole)] };
}
