import { flat, toLine } from '../../core/encode.ts';
import { cut } from '../../core/json.ts';
import { endsMessage, tokenIn } from '../../core/recognize.ts';
import { hasResult } from '../../core/tool-calls.ts';
import type { Projection } from '../../http/sse/projection.ts';
import type { Event, RunEvent } from '../../schema/event.ts';
import type { MessagePart } from '../../schema/message.ts';
import type { AwaitRequest, Run } from '../../schema/run.ts';
import { kindOf } from '../part-kinds.ts';
import { cancelledText } from '../run-errors.ts';
import { elicitOf } from './elicitation.ts';
import { type Call, eventIds } from './event-ids.ts';
import { errorOf, RpcError, resultOf } from './json-rpc.ts';
import { cannotAsk, questionId, requestIds } from './questions.ts';
import { endedResult, failedResult } from './tool-result.ts';

/** A call, and what is known of its tool and its caller. */
export interface ProjectedCall extends Call {
  readonly run_id: string;
  /** Whether the client reads an event that has no data, with which a stream begins. */
  readonly begins: boolean;
  readonly outputSchema: Readonly<Record<string, unknown>> | undefined;
  /** What the client gives back with its reply to a question. */
  readonly stateOf: (asked: { readonly run_id: string; readonly question: string }) => string;
}

export interface CallState {
  /** The answer of the call, as JSON: after the event that settles its run, for a client that can be asked no more. */
  readonly answer?: string;
  /** The status of HTTP for the answer, where it is not 200. */
  readonly status?: number;
  /** The end of the line that the agent writes, or of the line before, where this one has nothing yet. */
  readonly line: string;
  /** The frame of the last token. */
  readonly token?: string;
}

/** Characters of a line that a client shows: what the agent does now. */
const maxLine = 200;
const start: CallState = { line: '' };

/**
 * A log as the messages that answer a call: notifications of progress, whose number is that of the event, and the result.
 * An event has one frame at most, and each frame's id has the number of its event.
 */
export function mcpFrames(call: ProjectedCall): Projection<CallState> {
  const frames = new Frames(call);
  return {
    start,
    // They have the id and the token of one request.
    shared: false,
    project: (state, line, n, written) => frames.project(state, line, n, written),
  };
}

/** The first frame of a stream: the client has an id to go on with, before there is anything to tell. */
export const firstFrames = (call: ProjectedCall, n: number): string[] =>
  call.begins ? [`data:\nid: ${eventIds(call.run_id, call)}${n}\n\n`] : [];

class Frames {
  readonly #call: ProjectedCall;
  readonly #id: string;
  /** A notification up to its number; undefined for a client that wants none. */
  readonly #progress: string | undefined;

  constructor(call: ProjectedCall) {
    this.#call = call;
    this.#id = flat(`\nid: ${eventIds(call.run_id, call)}`);
    if (call.token === undefined) return;
    const token = toLine(call.token);
    const params = `{"progressToken":${token},"progress":`;
    this.#progress = flat(`data: {"jsonrpc":"2.0","method":"notifications/progress","params":${params}`);
  }

  project(state: CallState, line: string, n: number, frames: string[]): CallState {
    const token = tokenIn(line);
    if (token !== undefined) return this.#token(state, token, n, frames);
    if (endsMessage(line)) return state;
    const event: Event = JSON.parse(line);
    if ('run' in event) return this.#run(state, event, n, frames);
    switch (event.type) {
      case 'message.created':
        return start;
      case 'message.part':
        this.#part(event.part, n, frames);
        return state;
      case 'generic':
        this.#report(textIn(event.generic), n, frames);
        return state;
      case 'message.completed':
      case 'error':
        return state;
      default:
        event satisfies never;
        return state;
    }
  }

  #frame(n: number, data: string): string {
    return `data: ${data}${this.#id}${n}\n\n`;
  }

  /** `message` is JSON already. */
  #progressFrame(n: number, message?: string): string {
    const text = message === undefined ? '' : `,"message":${message}`;
    return `${this.#progress}${n}${text}}}${this.#id}${n}\n\n`;
  }

  #token(state: CallState, token: string, n: number, frames: string[]): CallState {
    if (this.#progress === undefined) return state;
    if (this.#call.everyToken) {
      frames.push(this.#progressFrame(n, token));
      return state;
    }
    const line = lineAfter(state.line, JSON.parse(token));
    const frame = this.#progressFrame(n, toLine(line.trim()));
    // One notification for all tokens of a batch.
    if (state.token !== undefined && frames.at(-1) === state.token) frames.pop();
    frames.push(frame);
    return { line, token: frame };
  }

  #part(part: MessagePart, n: number, frames: string[]): void {
    const known = kindOf(part);
    // The result of a call that was reported when it began.
    if (known.kind === 'tool' && known.call.tool_call_id !== undefined && hasResult(known.call)) return;
    this.#report(known.kind === 'tool' ? known.name : known.kind === 'reasoning' ? known.text : undefined, n, frames);
  }

  #report(message: string | undefined, n: number, frames: string[]): void {
    if (this.#progress === undefined) return;
    frames.push(this.#progressFrame(n, message === undefined ? undefined : toLine(cut(message, maxLine))));
  }

  #run(state: CallState, event: RunEvent, n: number, frames: string[]): CallState {
    const { run } = event;
    switch (event.type) {
      case 'run.created':
        frames.push(...firstFrames(this.#call, n));
        return start;
      case 'run.in-progress':
        this.#report(run.await_resume === undefined ? 'started' : 'goes on', n, frames);
        return { line: state.line };
      case 'run.awaiting':
        return run.await_request === undefined ? state : this.#ask(state, run, run.await_request, n, frames);
      case 'run.completed':
      case 'run.failed':
      case 'run.cancelled':
        return this.#answer(endedResult(run, this.#call.outputSchema), n, frames);
      default:
        event.type satisfies never;
        return state;
    }
  }

  #ask(state: CallState, { run_id }: Run, asked: AwaitRequest, n: number, frames: string[]): CallState {
    const { asks, modern, stateOf } = this.#call;
    if (!asks && modern) return this.#refuse(n, frames);
    if (!asks) return this.#answer(failedResult(cancelledText(cannotAsk), run_id), n, frames);
    const question = questionId(asked);
    if (modern) {
      const requestState = stateOf({ run_id, question });
      return this.#answer(
        { inputRequests: { [question]: elicitOf(asked) }, requestState },
        n,
        frames,
        'input_required',
      );
    }
    frames.push(this.#frame(n, toLine({ jsonrpc: '2.0', id: requestIds.of(run_id, question), ...elicitOf(asked) })));
    return state;
  }

  /** A client of the modern era has to be told which capability it lacks. */
  #refuse(n: number, frames: string[]): CallState {
    const error = new RpcError('missingCapability', cancelledText(cannotAsk), {
      status: 400,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    });
    const answer = toLine(errorOf(this.#call.id, error));
    frames.push(this.#frame(n, answer));
    return { line: '', answer, status: error.status };
  }

  #answer(result: object, n: number, frames: string[], resultType = 'complete'): CallState {
    const { id, modern } = this.#call;
    const answer = toLine(resultOf(id, modern ? { resultType, ...result } : result));
    frames.push(this.#frame(n, answer));
    return { line: '', answer };
  }
}

/** The text of an event of the agent's own that says how far it is. */
const textIn = ({ kind, message }: Readonly<Record<string, unknown>>): string | undefined =>
  kind === 'progress' && typeof message === 'string' ? message : undefined;

/** The line of a text that goes on; the line before as well, while this one has nothing. */
function lineAfter(before: string, text: string): string {
  const lines = `${before}${text}`.split('\n');
  const last = lines.pop() ?? '';
  const line = last.trim() === '' ? `${lines.findLast((one) => one.trim() !== '') ?? ''}\n${last}` : last;
  return line.slice(-maxLine).replace(/^[\udc00-\udfff]/, '');
}
