import type { ErrorBody } from '../schema/error.ts';
import { type AgentError, agentErrorOf, errorOf, stackOf, textIn, valueIn } from './errors.ts';
import { cut, type Json, toJson } from './json.ts';

/**
 * The error of a step as the journal has it. The fields of an ErrorBody are those that clients see if the error ends the
 * run.
 */
export interface JournaledError extends ErrorBody {
  readonly name?: string;
  readonly stack?: string;
  readonly cause?: JournaledCause;
  /** The errors that an AggregateError combines. */
  readonly errors?: readonly JournaledError[];
}

type JournaledCause = { readonly error: JournaledError } | { readonly value: Json };

/** Limits of one journaled error with all of its causes. The first error is kept whole; causes that are too many are left out. */
const most = { name: 200, stack: 8 * 1024, errors: 16, chars: 128 * 1024 };
/** Limits of a cause that is not an Error. */
const valueLimits = { chars: 8 * 1024, values: 1_000 };

/** The JSON of any value that a step threw. Reading the value may run code that throws; this function never throws. */
export const journaledError = (thrown: unknown): JournaledError => new Reader().read(thrown);

/**
 * The error that an agent gets from a failed step, in the first execution as well as in a replay. Its class is AgentError
 * in each of them, because a replay has no other classes. Name, message, stack and causes are the same as in the original.
 */
export function errorFromJournal({ name, stack, cause, errors, ...body }: JournaledError): AgentError {
  const error = agentErrorOf(body);
  if (name !== undefined) error.name = name;
  error.stack = stack ?? `${error.name}: ${error.message}`;
  // Not enumerable, as in an Error.
  const define = (key: string, value: unknown) =>
    Object.defineProperty(error, key, { value, configurable: true, writable: true });
  if (cause !== undefined) define('cause', 'error' in cause ? errorFromJournal(cause.error) : cause.value);
  if (errors !== undefined) define('errors', errors.map(errorFromJournal));
  return error;
}

/** Reads one error and its causes. */
class Reader {
  /** What was read, because an error may be a cause of itself. */
  readonly #seen = new Set<unknown>();
  #chars = most.chars;

  read(thrown: unknown): JournaledError {
    this.#seen.add(thrown);
    const name = textIn(thrown, 'name');
    const stack = stackOf(thrown);
    const own = {
      ...errorOf(thrown),
      ...(name && { name: cut(name, most.name) }),
      ...(stack && { stack: cut(stack, most.stack) }),
    };
    this.#chars -= JSON.stringify(own).length;
    const cause = this.#causeOf(thrown);
    const errors = this.#errorsOf(thrown);
    return { ...own, ...(cause && { cause }), ...(errors.length > 0 && { errors }) };
  }

  #causeOf(thrown: unknown): JournaledCause | undefined {
    const cause = valueIn(thrown, 'cause');
    if (this.#isNextError(cause)) return { error: this.read(cause) };
    if (cause === undefined || this.#chars <= 0 || isError(cause)) return undefined;
    const value = jsonOf(cause);
    if (value === undefined) return undefined;
    this.#chars -= JSON.stringify(value).length;
    return { value };
  }

  #errorsOf(thrown: unknown): JournaledError[] {
    const read: JournaledError[] = [];
    const errors = valueIn(thrown, 'errors');
    for (let at = 0; isList(errors) && at < most.errors; at += 1) {
      const error = valueIn(errors, at);
      if (this.#isNextError(error)) read.push(this.read(error));
    }
    return read;
  }

  /** Whether it is an Error that was not read before, and there is room for it. */
  #isNextError(value: unknown): boolean {
    return this.#chars > 0 && this.#seen.size < most.errors && isError(value) && !this.#seen.has(value);
  }
}

const isError = (value: unknown): boolean => guarded(() => value instanceof Error) || stackOf(value) !== undefined;

const isList = (value: unknown): boolean => guarded(() => Array.isArray(value));

/** A Proxy may throw whatever is asked of it. */
function guarded(asked: () => boolean): boolean {
  try {
    return asked();
  } catch {
    return false;
  }
}

function jsonOf(value: unknown): Json | undefined {
  try {
    return toJson(value, valueLimits);
  } catch {
    return undefined;
  }
}
