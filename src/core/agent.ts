import { type Static, Type } from '@sinclair/typebox';
import type { Observable, ObservableInput } from 'rxjs';
import { AgentManifest, type AgentMetadata, AgentName, type AgentTool } from '../schema/agent.ts';
import type { GenericEvent } from '../schema/event.ts';
import { utcOf } from '../schema/formats.ts';
import type { Message, MessagePart } from '../schema/message.ts';
import type { AwaitRequest, RunUsage } from '../schema/run.ts';
import type { Webhook } from '../schema/webhook.ts';
import { fail } from './errors.ts';
import { cut, NotJson, toJson } from './json.ts';
import type { ModelCallReport } from './model-call.ts';
import type { Principal } from './principal.ts';
import type { AgentReply, ValueOf } from './reply.ts';
import type { AgentRequest } from './request.ts';
import { compile } from './validate.ts';

/** What an agent may emit: text, a part, a whole message, or an event of its own kind. */
export type AgentOutput = string | MessagePart | Message | GenericEvent;

/** A manifest as its author writes it: content types default to everything. */
export const AgentManifestInput = Type.Composite([
  Type.Omit(AgentManifest, ['input_content_types', 'output_content_types', 'status', 'addresses']),
  Type.Partial(Type.Pick(AgentManifest, ['input_content_types', 'output_content_types'])),
]);
export type AgentManifestInput = Static<typeof AgentManifestInput>;

/** How an agent's runs are executed. */
export interface AgentOptions {
  /** Re-enter the run after a crash or a deploy instead of failing it. Default false. */
  readonly durable?: boolean;
  /** What to do where the session has a run that is not final. Default `parallel`; the header `If-Busy` overrides it. */
  readonly if_busy?: IfBusy;
  /**
   * What to do when the last reader of a stream, or the client of a sync run, disconnects. Default `continue`;
   * the header `On-Disconnect` overrides it. `{ grace }` cancels unless a reader is back in that many milliseconds.
   */
  readonly on_disconnect?: OnDisconnect | { readonly grace: number };
  /** Where changes of status are POSTed, for runs whose request names no webhook. Its URL is checked at the start. */
  readonly webhook?: Webhook;
  /**
   * Milliseconds after its end for which a final run is kept, with its messages in the session. Only a time that is
   * shorter than the server's limit `runTtl` has an effect. Default: that limit, which keeps the messages.
   */
  readonly run_ttl?: number;
  /** Scopes that a principal needs to run the agent. Agents that call it need none. Default: none. */
  readonly scopes?: readonly string[];
}

/** `parallel` runs beside the other run, `enqueue` after it; `reject` answers 409, `interrupt` cancels the other run. */
export type IfBusy = 'parallel' | 'enqueue' | 'reject' | 'interrupt';

/** As the header has it: the number of `grace` is in seconds. */
export type OnDisconnect = 'continue' | 'cancel' | `grace=${number}`;

/** Whether a text is a disconnect policy. */
export const isOnDisconnect = (text: string): text is OnDisconnect =>
  text === 'continue' || text === 'cancel' || /^grace=\d{1,6}(\.\d{1,3})?$/.test(text);

export interface AwaitOptions<Schema extends object = Record<string, unknown>> {
  /**
   * A JSON Schema for the reply: for its JSON part, or else its text. A reply that does not fit is refused. With a schema of
   * TypeBox, `value` of the reply has its type.
   */
  readonly schema?: Schema;
  /** Milliseconds until the run fails with `await_timeout`. Default: the server's limit `awaitTimeout`. */
  readonly expiresIn?: number;
  /**
   * Asks the client to run one of its tools (`context.request.tools`) and to reply with the output. A client that has no
   * tools shows the question.
   */
  readonly tool?: AwaitRequest['tool'];
  /**
   * Withdraws the question when it fires; what waits for the reply then fails with its reason. An `await` that lost a
   * `Promise.race` goes on asking without it. RxJS' `race` unsubscribes from the loser, which withdraws it as well.
   */
  readonly signal?: AbortSignal;
}

export interface ToolOptions {
  /** Ask a person whether the tool may run. Default false. */
  readonly approval?: boolean;
  /**
   * Whether a durable run may do the work once more where a crash cut it off. With false, such a call fails with
   * `tool_call_unknown`, and costs a commit before its work begins. Default true, as for a step.
   */
  readonly repeatable?: boolean;
}

export interface AgentSession {
  /** uuid */
  readonly id: string;
  /**
   * The messages of the session's runs that are over, without interrupted ones, oldest first; read when subscribed to. The
   * last answer of a run that was cancelled or has failed has that as its `finish_reason`.
   */
  readonly history: Observable<Message>;
  /** The state that a run of this session stored last, or undefined. */
  state<T>(): Promise<T | undefined>;
  /** Stores any JSON value as the session's state; resolves when it is durable. */
  setState(value: unknown): Promise<void>;
}

/** Writes to the server's log, with the run's id. */
export interface AgentLog {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** Drops what it is told. */
export const silentLog: AgentLog = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * An Observable that may be awaited as well. It is cold: nothing begins before it is subscribed to or awaited. Awaiting
 * it twice begins its work once; each subscription begins it again.
 */
export interface Awaitable<T, R = T> extends Observable<T>, PromiseLike<R> {}

/** Why the signal of a context fired. */
export class EndOfWork extends Error {
  /**
   * Resolves to whether the run goes on in another process, or later in this one: work outside of the process is then still
   * needed. A run that another process has taken or cancelled is read from the store first.
   */
  readonly continues: Promise<boolean>;

  constructor(message: string, continues: Continues) {
    super(message);
    this.name = 'EndOfWork';
    this.continues = typeof continues === 'function' ? continues() : Promise.resolve(continues);
  }
}

/** Whether a run goes on after its signal has fired, or how to find that out. */
export type Continues = boolean | (() => Promise<boolean>);

export interface AgentContext {
  /** uuid */
  readonly run_id: string;
  readonly agent_name: string;
  /**
   * The calls that led to this agent, such as `panel/1 optimist/1`; empty for the run's own agent. It is the same in every
   * life of a durable run.
   */
  readonly path: string;
  /**
   * Fires when the run ends, however it ends, and when it leaves this process. In a call it fires when the call ends. Its
   * reason is an `EndOfWork`.
   */
  readonly signal: AbortSignal;
  readonly session: AgentSession;
  /** The caller that made the run, also in the agents that it calls; undefined where authentication is off. */
  readonly principal: Principal | undefined;
  /** What the request of the run says beside its messages; the same in agents that it calls. */
  readonly request: AgentRequest;
  readonly log: AgentLog;
  /** Asks: the run is `awaiting` until the reply comes. Emits the reply and completes; resolves to it where it is awaited. */
  await<Schema extends object = Record<string, unknown>>(
    request: string | Message | AwaitRequest,
    options?: AwaitOptions<Schema>,
  ): Awaitable<AgentReply<ValueOf<Schema>>>;
  /**
   * A named piece of work. In a durable run its values are journaled. When the run is re-entered, the values come from
   * the journal and the work is not done again. If the work was cut off, `again` gets the values so far and returns
   * the rest. Without `again` the work is done once more. The step goes on where it was if the work emits the same values.
   * At the first difference the open message ends as interrupted, and all that the work emits now is passed on, in a new
   * message. An agent that adds up a step's values itself needs `again`, or adds them up inside of the step.
   * Where it is awaited, it resolves to its last value, or undefined where it has none.
   */
  step<T>(
    name: string,
    work: () => ObservableInput<T>,
    again?: (before: readonly T[]) => ObservableInput<T>,
  ): Awaitable<T>;
  /**
   * A call of a tool, as a step: `const weather = yield* context.tool('weather', { city }, lookUp)`. Readers see it from its
   * beginning to its result, in every protocol. Returns what the work has returned, which has to be JSON in a durable run.
   * Where the work fails, readers see that the call has failed, and the error is thrown. An agent that catches it goes on.
   * With `approval`, a person is asked first. Where the call is not allowed, it throws an AgentError `tool_denied`.
   */
  tool<Input extends object, Output>(
    name: string,
    input: Input,
    work: (input: Input) => Output | PromiseLike<Output>,
    options?: ToolOptions,
  ): AsyncGenerator<MessagePart, Output>;
  /**
   * As a step, and it may also begin after the run was cancelled, within `cancelGrace`: a refund, or an unlock in
   * `finally`. Any other step is refused then. A durable run whose process dies meanwhile is re-entered to clean up.
   */
  cleanup<T>(name: string, work: () => ObservableInput<T>): Awaitable<T>;
  /**
   * Emits once and completes after so many milliseconds. A durable run keeps the time at which it wakes, over restarts and
   * deploys, and sleeps outside of memory. The time does not count for `runTimeout` and `idleTimeout`.
   * In a run that is not durable, it is a timer of its process.
   */
  sleep(milliseconds: number): Awaitable<void>;
  /** As `sleep`, until a time: a Date or a date-time. One that is over ends the sleep at once. */
  sleepUntil(time: Date | string): Awaitable<void>;
  /**
   * Resolves when all that the run has emitted and journaled is durable. A step that emits a value, waits, and then does
   * work that must not be repeated is told of that work in `again`, wherever it was cut off. It costs one commit. Rejects with
   * an `EndOfWork` where the run or the call ends meanwhile, or is cancelled.
   */
  committed(): Promise<void>;
  /**
   * The output of another hosted agent, as part of this run; unsubscribing cancels it. Its whole messages have the role
   * `agent/<name>`. Where it is awaited, it resolves to all its parts as one such message, without generic events.
   */
  call(agent: string, input: string | Message | readonly Message[]): Awaitable<AgentOutput, Message>;
  /**
   * Adds to the run's `usage`. Without `tokens`, they are the sum of the input's and the output's. The agent's average
   * counts these instead of streamed parts.
   */
  usage(used: Partial<RunUsage>): void;
  /**
   * Reports a call of a model that has ended, for traces and for the search for a fault (`GET /runs/{run_id}/diagnostics`).
   * No stream has it. It counts no tokens: see `usage`. In a durable run it belongs into the work of a step.
   */
  modelCall(report: ModelCallReport): void;
  /**
   * The W3C trace context of the agent's span as headers, `traceparent` and perhaps others, for requests that no
   * instrumentation adds them to. Empty where the server has no OpenTelemetry SDK.
   */
  trace(): Record<string, string>;
}

/** What an agent returns: its output as an Observable, a promise or an iterable. A promise may hold one output, or many. */
export type AgentResult =
  | ObservableInput<AgentOutput>
  | Callbag
  | PromiseLike<AgentOutput | ObservableInput<AgentOutput> | Callbag>;

/** A source of the callbag specification. Its values are not checked by the compiler. */
export type Callbag = (start: 0, sink: never) => unknown;

export type AgentFunction = (input: Message[], context: AgentContext) => AgentResult;

/** What the compiler misses in a wrong function: its message names the type of the values that are no output. */
export interface NotAgentOutput<Value> {
  readonly 'an agent emits only AgentOutput': Value;
}

/** The values of a result that are no output. */
export type WrongOutput<Result> = Result extends AgentOutput
  ? never
  : Result extends PromiseLike<infer Value>
    ? WrongOutput<Value>
    : Result extends ObservableInput<infer Value>
      ? Exclude<Value, AgentOutput>
      : Result;

/** Any result. Its members of `AgentResult` keep `type: 'generic'` and other literals of an Observable's values. */
// biome-ignore lint/suspicious/noConfusingVoidType: the result of a function without `return`
export type AnyResult = AgentResult | object | number | boolean | bigint | symbol | null | undefined | void;

/** `AnyResult` itself is what the compiler knows while the function is being typed. */
export type IfRight<Result, Type, Otherwise = never> = [AnyResult] extends [Result]
  ? Type
  : [Result] extends [AgentResult]
    ? Type
    : Otherwise;

/**
 * A function of an agent, as `defineAgent` takes it. A wrong result is compared with `NotAgentOutput` alone: the message of a
 * comparison with `AgentResult` has up to eleven lines. The types of iterables and promises tell the compiler what the
 * function emits before its result is known, so that literals stay and editors complete the fields of a part.
 */
export type FunctionReturning<Result> = (
  input: Message[],
  context: AgentContext,
) =>
  | IfRight<Result, Iterable<AgentOutput>>
  | IfRight<Result, AsyncIterable<AgentOutput>>
  | PromiseLike<IfRight<Result, AgentOutput | ObservableInput<AgentOutput>>>
  | IfRight<Result, AgentResult, Result & NotAgentOutput<WrongOutput<Result>>>;

export interface Agent {
  readonly manifest: AgentManifest;
  readonly run: AgentFunction;
  readonly options: AgentOptions & { readonly on_disconnect?: OnDisconnect };
}

const checkManifest = compile(AgentManifestInput, 'manifest');

/**
 * Makes an agent of a manifest and a function. A string that the function returns is one text part.
 * @throws RivuletError `validation_failed` that names the field of the manifest or of the options
 */
export function defineAgent<Result extends AnyResult>(
  manifest: AgentManifestInput,
  run: FunctionReturning<Result>,
  options?: AgentOptions,
): Agent;
export function defineAgent(manifest: AgentManifestInput, run: AgentFunction, options: AgentOptions = {}): Agent {
  const { metadata, ...rest } = checkManifest(plain(manifest));
  checkTool(metadata?.tool);
  return Object.freeze({
    manifest: Object.freeze({
      input_content_types: ['*/*'],
      output_content_types: ['*/*'],
      ...rest,
      ...(metadata && { metadata: inUtc(metadata) }),
    }),
    run,
    options: withHeader(options),
  });
}

/** Clients refuse a list with a tool that takes anything but an object, and so all tools of the server. */
function checkTool(tool: AgentTool = {}): void {
  for (const name of ['input_schema', 'output_schema'] as const) {
    const type = tool[name] === undefined ? 'object' : tool[name].type;
    if (type === 'object') continue;
    const got = cut(JSON.stringify(type) ?? 'none', 60);
    throw fail('validation_failed', `manifest.metadata.tool.${name}.type`, `expected "object", got ${got}`);
  }
}

/** Milliseconds: what the header `On-Disconnect` can express. */
const longestGrace = 999_999_999;

/** The options with `on_disconnect` as the header has it. */
function withHeader({ on_disconnect, ...rest }: AgentOptions): Agent['options'] {
  if (rest.run_ttl !== undefined && !(rest.run_ttl >= 0)) {
    throw fail('validation_failed', 'options.run_ttl', `expected milliseconds, at least 0; got ${rest.run_ttl}`);
  }
  if (on_disconnect === undefined) return rest;
  if (typeof on_disconnect === 'string') return { ...rest, on_disconnect };
  const { grace } = on_disconnect;
  if (grace >= 0 && grace <= longestGrace) return { ...rest, on_disconnect: `grace=${Math.round(grace) / 1_000}` };
  const problem = `expected 0 to ${longestGrace} milliseconds, got ${grace}`;
  throw fail('validation_failed', 'options.on_disconnect.grace', problem);
}

/** Limits of a manifest: each list of agents contains all manifests. */
const manifestLimits = { chars: 1024 * 1024, values: 10_000 };

// A JSON copy: a manifest that JSON cannot express would fail when a client first asks for it.
function plain(manifest: unknown): unknown {
  try {
    return toJson(manifest, manifestLimits);
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    throw fail('validation_failed', error.pathIn('manifest'), error.problem);
  }
}

function inUtc({ created_at, updated_at, ...rest }: AgentMetadata): AgentMetadata {
  return {
    ...rest,
    ...(created_at !== undefined && { created_at: utcOf(created_at) ?? created_at }),
    ...(updated_at !== undefined && { updated_at: utcOf(updated_at) ?? updated_at }),
  };
}

const agentName = new RegExp(AgentName.pattern ?? '');

/** What is wrong with a name for an agent, or undefined. */
export function nameProblem(name: string): string | undefined {
  return name.length <= 63 && agentName.test(name)
    ? undefined
    : 'a name is 1 to 63 lower-case letters, digits and hyphens, with no hyphen at its ends';
}

/** Whether a module's default export is an agent; duck-typed, since it may come from another copy of this file. */
export function isAgent(value: unknown): value is Agent {
  return (
    typeof value === 'object' &&
    value !== null &&
    'run' in value &&
    typeof value.run === 'function' &&
    'manifest' in value &&
    typeof value.manifest === 'object' &&
    'options' in value
  );
}
