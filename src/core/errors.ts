import type { ErrorBody, ErrorCode } from '../schema/error.ts';
import { cut, NotJson, reasonOf, toJson } from './json.ts';

const codeOf = (status: number): ErrorCode =>
  status === 404 || status === 410 ? 'not_found' : status < 500 ? 'invalid_input' : 'server_error';

/** The status decides the code. */
const row = <Args extends unknown[]>(status: number, text: (...args: Args) => string) => ({
  status,
  code: codeOf(status),
  text,
});

/** A URL without the password before its host and without its query, which may have a token. */
const withoutSecrets = (url: string): string =>
  cut(url.replace(/^(\w+:\/\/)[^/?#]*@/, '$1').replace(/[?#].*$/s, ''), 300);

/**
 * Every error of Rivulet itself: its HTTP status, its code on the wire, and its text. The key is its `data.reason` on
 * the wire, and its name in the log and in `docs/errors.md`, which lists them all.
 */
export const errorTable = {
  body_not_json: row(400, (why: string) => `The body is not JSON: ${why}.`),
  body_too_deep: row(400, (limit: number) => `The body is nested deeper than ${limit} levels.`),
  body_too_large: row(413, () => 'The body is larger than this server accepts.'),
  read_too_large: row(
    413,
    (limit: number) =>
      `The answer needs more than ${limit} characters of stored runs; ask for fewer runs at once, or read the events of a run as a stream: GET /runs/{run_id}/events.`,
  ),
  references_too_large: row(
    413,
    (limit: number) =>
      `The items that the input refers to have more than ${limit} characters; refer to fewer, or send what matters as text.`,
  ),
  too_many_values: row(
    413,
    (limit: number) => `The body has more than ${limit} JSON values; send less at once, or large data as text.`,
  ),
  too_many_members: row(
    413,
    (limit: number) => `An object of the body has more than ${limit} members; send large data as text.`,
  ),
  content_encoding: row(
    415,
    (got: string) => `Send the body as it is, without Content-Encoding; got ${cut(got, 300)}.`,
  ),
  media_type: row(415, (got: string) => `Send application/json in UTF-8; got ${cut(got, 300)}.`),
  validation_failed: row(422, (path: string, problem: string) => `${path}: ${problem}.`),
  bad_request: row(400, (why: string) => why),
  version_unsupported: row(400, (problem: string) => `${problem}.`),
  operation_unknown: row(404, (name: string) => `There is no operation ${cut(name, 100)}.`),
  operation_unsupported: row(400, (why: string) => `${why}.`),
  host_refused: row(
    421,
    (host: string) =>
      `This server does not answer to the host ${cut(host, 300)}; send one of its own names, or start it with --allow-host (allowedHosts) and that name.`,
  ),
  origin_refused: row(
    403,
    (origin: string) =>
      `Pages of ${cut(origin, 300)} may not call this server; start it with --allow-origin (allowedOrigins) and the page's origin.`,
  ),
  unauthenticated: row(
    401,
    (problem: string) => `${problem}; send a key or token of this server as Authorization: Bearer.`,
  ),
  ticket_refused: row(
    401,
    () =>
      'The ticket has expired, or it is for the events of another run; get a new one with POST /runs/{run_id}/stream-ticket.',
  ),
  scope_missing: row(
    403,
    (scopes: string) =>
      `This call needs the scope ${cut(scopes, 300)}; ask the operator for a key or token that has it.`,
  ),
  agents_limited: row(
    403,
    () =>
      'These credentials are limited to some agents, and the call concerns all of them; send credentials of the same owner without that limit.',
  ),
  session_mismatch: row(
    400,
    (a: string, b: string) => `session_id is ${a} but session.id is ${b}; send one, or the same twice.`,
  ),
  idempotency_key_reused: row(
    422,
    (key: string) => `The Idempotency-Key ${key} came with another body before; use a new key for a new request.`,
  ),
  session_busy: row(
    409,
    (session: string, run: string) =>
      `Session ${session} is busy with run ${run}; wait for it, or send If-Busy: enqueue.`,
  ),
  queue_full: row(
    429,
    (session: string, limit: number) =>
      `Session ${session} has ${limit} runs that are not final, which is the limit; wait until one of them has ended.`,
  ),
  conflict: row(409, (id: string) => `Run ${id} was changed by another request at the same moment; read it again.`),
  not_final: row(409, (run: string, status: string) => `Run ${run} is ${status}; cancel it before you delete it.`),
  target_unknown: row(404, (id: string) => `There is no push notification config ${id}.`),
  delivery_unknown: row(404, (id: string) => `There is no webhook ${id}.`),
  delivery_pending: row(409, (id: string) => `The webhook ${id} is pending: it is sent without a replay.`),
  webhooks_off: row(
    422,
    () => 'webhook: this server sends no webhooks; start it with RIVULET_WEBHOOK_SECRET (webhooks.secrets).',
  ),
  log_removed: row(410, (id: string) => `Run ${id} is not kept any more.`),
  log_damaged: row(500, (id: string) => `The log of run ${id} cannot be read; the server’s log has the cause.`),
  cursor_invalid: row(
    400,
    (name: string, got: string) =>
      `${name} is not a cursor of this run: ${got}. Send the id of an event that you have seen.`,
  ),
  route_unknown: row(404, (method: string, path: string) => `There is no ${method} ${cut(path, 1_000)}.`),
  agent_unknown: row(404, (name: string, meant?: string) =>
    meant === undefined
      ? `There is no agent ${name}; GET /agents lists them.`
      : `There is no agent ${name}; did you mean ${meant}? GET /agents lists them.`,
  ),
  run_unknown: row(404, (id: string) => `There is no run ${id}.`),
  session_unknown: row(404, (id: string) => `There is no session ${id}.`),
  resource_unknown: row(404, (id: string) => `There is no resource ${id}.`),
  method_unknown: row(
    405,
    (method: string, path: string, allowed: string) => `${path} does not take ${method}, only ${allowed}.`,
  ),
  not_awaiting: row(
    409,
    (id: string, status: string) => `Run ${id} is ${status}; only an awaiting run can be resumed.`,
  ),
  await_type_mismatch: row(
    409,
    (wanted: string, got: string) => `The run awaits a resume of type ${wanted}; got ${got}.`,
  ),
  question_mismatch: row(
    409,
    (wanted: string, got?: string) =>
      `The run awaits the reply to question ${wanted}, not to ${got === undefined ? 'an earlier one' : `question ${got}`}; read the run again.`,
  ),
  already_final: row(409, (id: string, status: string) => `Run ${id} is already ${status}.`),
  not_parked: row(
    409,
    (id: string, status: string) => `Run ${id} is ${status} and not parked; only a parked run can be tried again.`,
  ),
  not_repeatable: row(
    409,
    (id: string, after: number, agent: string) =>
      `Run ${id} cannot be repeated up to event ${after}: agent ${agent} is not durable, so only the input was recorded; run it again from the beginning, with after 0.`,
  ),
  owner_differs: row(
    403,
    (id: string) =>
      `Run ${id} belongs to another owner, and only that owner can run it again: a copy would be kept when the data of that owner is erased.`,
  ),
  content_type_refused: row(
    422,
    (path: string, got: string, agent: string, takes: string) => `${path}: agent ${agent} takes ${takes}, not ${got}.`,
  ),
  request_timeout: row(408, () => 'The request did not arrive in time; send it again.'),
  header_overflow: row(431, () => 'The request’s headers are larger than this server accepts.'),
  token_limit: row(
    500,
    (limit: number, used: number) =>
      `The run has used ${used} tokens; ${limit} is the limit of this server (--limit tokens).`,
  ),
  quota_exceeded: row(
    429,
    (points: number, what: string, window: number, reset: number) =>
      `${points} ${what} in ${window} s are the limit of each caller; try again in ${reset} s.`,
  ),
  too_many_own_runs: row(
    429,
    (limit: number) => `You have ${limit} runs at work, which is the limit of each caller; wait until one has ended.`,
  ),
  too_many_own_streams: row(
    429,
    (limit: number) => `You have ${limit} streams open, which is the limit of each caller; close one first.`,
  ),
  too_many_own_reads: row(
    429,
    (limit: number) =>
      `Your pending answers hold ${limit} characters of runs, which is the limit of each caller; read them to their end first.`,
  ),
  rate_limited: row(429, () => 'Too many requests; try again later.'),
  too_busy: row(503, (why: string) => `${why}; try again soon.`),
  too_many_streams: row(
    503,
    (limit: number) => `${limit} streams are open, which is the limit of this server; try again soon.`,
  ),
  auth_unavailable: row(503, () => 'The server cannot verify credentials at the moment; try again soon.'),
  store_unavailable: row(503, (now = 'try again soon') => `The store does not answer at the moment; ${now}.`),
  node_unresponsive: row(
    503,
    (id: string) => `The node that executes run ${id} did not accept the reply in time; read the run again soon.`,
  ),
  key_in_use: row(503, () => 'Another request with this Idempotency-Key is being executed; send this one again soon.'),
  stopping: row(503, () => 'The server is stopping; try again in a moment.'),
  internal_error: row(
    500,
    (request: string) => `Something went wrong on the server; its log has the cause under request ${request}.`,
  ),
  // The errors below end runs; clients see them in `run.error`, never as an HTTP status.
  run_interrupted: row(
    500,
    () =>
      'The server stopped before this run had ended. Start it again; a run of a durable agent would have continued.',
  ),
  recovery_exhausted: row(
    500,
    (attempts: number) =>
      `The run was re-entered ${attempts} times without progress; its agent may be what stops the server.`,
  ),
  replay_diverged: row(
    500,
    (position: number | string, expected: string, got: string) =>
      `The run was re-entered, and its agent did not repeat its earlier output: at ${
        typeof position === 'number' ? `event ${position}` : position
      }, expected ${cut(expected, 300)}, got ${cut(got, 300)}. Put what may differ into a step.`,
  ),
  await_timeout: row(500, () => 'The run awaited a reply for longer than its limit.'),
  run_timeout: row(500, (seconds: number) => `The run was at work for more than ${seconds} seconds.`),
  idle_timeout: row(500, (seconds: number) => `The agent emitted nothing for ${seconds} seconds.`),
  output_limit: row(
    500,
    (what: string, limit: number) =>
      `The agent’s output passed the limit of ${limit} ${what}; emit less, or raise the limit.`,
  ),
  output_invalid: row(500, (agent: string, problem: string) => `Agent ${agent} emitted invalid output: ${problem}.`),
  step_value_invalid: row(
    500,
    (step: string, problem: string) =>
      `Step ${step} emitted a value that JSON cannot express: ${problem}. Emit plain data.`,
  ),
  await_invalid: row(
    500,
    (agent: string, problem: string) => `Agent ${agent} made an invalid await request: ${problem}.`,
  ),
  run_not_open: row(
    500,
    (what: string, why: string) =>
      `${what} ended or did not begin: ${why}. Stop such work when the signal fires; context.cleanup may begin after a cancel.`,
  ),
  call_depth: row(
    500,
    (limit: number) => `Agents call each other more than ${limit} deep; check for a cycle of calls.`,
  ),
  call_cannot_ask: row(
    500,
    (agent: string) =>
      `Agent ${agent} asks within a call that a durable agent awaits, and is not durable: its answer is kept as a whole. Define it with { durable: true }.`,
  ),
  step_cannot_ask: row(
    500,
    (agent: string, step: string) =>
      `Agent ${agent} asks within the work of step ${step}, which is kept as a whole: the question would be asked anew after a crash. Ask outside of the step.`,
  ),
  store_failed: row(500, () => 'The store did not take the run’s events; the server’s log has the cause.'),
  resource_refused: row(
    502,
    (url: string, why: string) => `The session’s resource ${withoutSecrets(url)} could not be read: ${why}.`,
  ),
} as const;

export type ErrorName = keyof typeof errorTable;

/** An error of the table above, made by `fail`. */
export class RivuletError extends Error {
  readonly kind: ErrorName;
  readonly status: number;
  readonly code: ErrorCode;
  #details: Readonly<Record<string, unknown>> = {};
  #frames: string | undefined;

  constructor(kind: ErrorName, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RivuletError';
    this.kind = kind;
    this.status = errorTable[kind].status;
    this.code = errorTable[kind].code;
  }

  /** Adds fields to `data`, for programs that show the error in a form of their own. */
  with(details: Readonly<Record<string, unknown>>): this {
    this.#details = details;
    return this;
  }

  /**
   * For the agent of a durable run: the engine makes this error again in each execution, with other frames of its own. An
   * agent that emits `stack` has to emit the same each time, so that `stack` becomes the name and the message.
   */
  withoutFrames(): this {
    this.#frames ??= this.stack;
    this.stack = `${this.name}: ${this.message}`;
    return this;
  }

  /** The stack for the server's log, also where the agent does not see it. */
  get frames(): string | undefined {
    return this.#frames ?? this.stack;
  }

  /** The body as the wire has it. */
  toJSON(): ErrorBody {
    return { code: this.code, message: this.message, data: { ...this.#details, reason: this.kind } };
  }
}

/** What the work returns, or the error with which it refuses a request. @throws any other error */
export function orRefusal<T>(work: () => T): T | RivuletError {
  try {
    return work();
  } catch (error) {
    if (error instanceof RivuletError) return error;
    throw error;
  }
}

/** Makes the error of a row of the table; the caller throws it. */
export function fail<Name extends ErrorName>(
  kind: Name,
  ...args: Parameters<(typeof errorTable)[Name]['text']>
): RivuletError {
  // One cast: TypeScript does not correlate a table's key with its row's parameters.
  const text = errorTable[kind].text as (...args: unknown[]) => string;
  return new RivuletError(kind, text(...args));
}

/**
 * An agent throws or emits this error to fail its run with a code of its own. The run's error has that code as
 * `data.code`, unless it is one of the protocol's three. `data` is any JSON value of at most 64 Ki characters; one that
 * is not an object becomes `{ value: … }`.
 */
export class AgentError extends Error {
  readonly code: string;
  readonly data?: unknown;

  constructor(code: string, message: string, data?: unknown) {
    super(message);
    this.name = 'AgentError';
    this.code = code;
    this.data = data;
  }
}

/** Limits of a run error's message and data, which every copy of the Run carries. */
const maxMessage = 8 * 1024;
const dataLimits = { chars: 64 * 1024, values: 10_000, wellFormed: true };

const isErrorCode = (code: string): code is ErrorCode =>
  code === 'server_error' || code === 'invalid_input' || code === 'not_found';

/**
 * The `error` of a run whose agent threw a value, as plain JSON. It may be any value, so reading its fields may throw
 * as well; this function never throws. Only an AgentError keeps its code. It is recognised by its class, because a step's
 * error has the name of the original, or by its name, because the agent may have loaded another copy of this file.
 */
export function errorOf(thrown: unknown): ErrorBody {
  if (typeof thrown === 'string') return { code: 'server_error', message: cut(thrown, maxMessage) };
  const [kind, name, message, code] = ['kind', 'name', 'message', 'code'].map((key) => textIn(thrown, key));
  const text = cut(message || name || 'The agent threw a value that is not an Error.', maxMessage);
  if (isA(RivuletError, thrown) && kind !== undefined && isErrorName(kind)) {
    return { code: errorTable[kind].code, message: text, data: { reason: kind } };
  }
  const coded = name === 'AgentError' || isA(AgentError, thrown);
  if (!coded || code === undefined) return { code: 'server_error', message: text };
  const data = objectOf(valueIn(thrown, 'data'));
  if (isErrorCode(code)) return { code, message: text, ...(data && { data }) };
  return { code: 'server_error', message: text, data: { ...data, code: cut(code, 200) } };
}

/**
 * The error that an agent threw, from the result of `errorOf`. It has no frames, because it was not thrown here. Frames of
 * the engine would differ in each execution of a durable run.
 */
export function agentErrorOf({ code, message, data }: ErrorBody): AgentError {
  const { code: own, ...rest } = data ?? {};
  const error =
    code === 'server_error' && typeof own === 'string'
      ? new AgentError(own, message, Object.keys(rest).length > 0 ? rest : undefined)
      : new AgentError(code, message, data);
  error.stack = `${error.name}: ${message}`;
  return error;
}

/** The stack of any value that was thrown, for the server's log and the journal. Never throws. */
export const stackOf = (thrown: unknown): string | undefined =>
  isA(RivuletError, thrown) ? thrown.frames : textIn(thrown, 'stack');

/** Whether any value that was thrown is an error of Rivulet. Never throws. */
export const isOwnError = (thrown: unknown): boolean => isA(RivuletError, thrown);

/** Hides where the engine made an error that reaches the agent of a durable run; see `RivuletError.withoutFrames`. */
export function hideFrames(thrown: unknown): void {
  if (isA(RivuletError, thrown)) thrown.withoutFrames();
}

const isErrorName = (name: string): name is ErrorName => Object.hasOwn(errorTable, name);

function isA<E extends Error>(type: new (...args: never[]) => E, thrown: unknown): thrown is E {
  try {
    return thrown instanceof type;
  } catch {
    return false;
  }
}

/** A field of any value, or undefined. Never throws. */
export function valueIn(thrown: unknown, key: PropertyKey): unknown {
  try {
    return typeof thrown === 'object' && thrown !== null ? Reflect.get(thrown, key) : undefined;
  } catch {
    return undefined;
  }
}

export function textIn(thrown: unknown, key: string): string | undefined {
  const value = valueIn(thrown, key);
  return typeof value === 'string' ? value : undefined;
}

function objectOf(data: unknown): Record<string, unknown> | undefined {
  try {
    const value = toJson(data, dataLimits);
    if (value === undefined || value === null) return undefined;
    return typeof value === 'object' && !Array.isArray(value) ? { ...value } : { value };
  } catch (error) {
    return { invalid: error instanceof NotJson ? `${error.pathIn('data')} ${error.problem}` : reasonOf(error) };
  }
}
