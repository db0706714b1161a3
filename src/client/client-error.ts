import type { ErrorBody } from '../schema/error.ts';
import { isError } from './shapes.ts';

export interface ClientErrorFields {
  readonly code: string;
  readonly message: string;
  readonly status: number;
  readonly data?: unknown;
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
}

/**
 * The error of a failed call. If the server responded with an Error object, `code`, `message` and `data` are the server's.
 * The client's own codes: `network` (no connection, or it broke), `silent` (no byte within the time-out),
 * `interrupted` (a stream ended before its run), `headers` (the headers function threw), `not_understood` (not a response
 * of a Rivulet server), `redirected` (the server redirects to another URL), `event_too_large`.
 */
export class ClientError extends Error {
  override readonly name = 'ClientError';
  readonly code: string;
  /** HTTP status of the response; 0 if there was none, or its stream broke. */
  readonly status: number;
  readonly data: unknown;
  /** Milliseconds to wait before a retry, from `Retry-After`. */
  readonly retryAfter: number | undefined;

  constructor({ code, message, status, data, retryAfter, cause }: ClientErrorFields) {
    super(message, cause === undefined ? {} : { cause });
    this.code = code;
    this.status = status;
    this.data = data;
    this.retryAfter = retryAfter;
  }

  /** Whether the same call may succeed later. */
  get retryable(): boolean {
    return [0, 408, 429].includes(this.status) || this.status >= 500;
  }
}

/** There was no response, or it broke off; the same call may succeed later. */
export const broken = (code: string, message: string, cause?: unknown): ClientError =>
  new ClientError({ code, status: 0, message, cause });

/** The response is not one of a Rivulet server. */
export const notUnderstood = (message: string, status = 200): ClientError =>
  new ClientError({ code: 'not_understood', status, message });

/** The most specific name of an error: the agent's code, the server's reason, or the protocol's code. */
export function reasonOf({ code, data }: ErrorBody): string {
  const specific = data?.code ?? data?.reason;
  return typeof specific === 'string' ? specific : code;
}

/** The error of a response that is not 2xx, with `text` as its body. The HTML pages of proxies are left out. */
export function refusal({ status, statusText, headers }: Response, text: string): ClientError {
  const { code = 'not_understood', message = `${status} ${statusText}`.trim(), data } = errorIn(text);
  return new ClientError({ code, message, status, data, retryAfter: millisecondsOf(headers.get('Retry-After')) });
}

function errorIn(text: string): Partial<ErrorBody> {
  try {
    const body = JSON.parse(text);
    if (isError(body)) return body;
  } catch {}
  return {};
}

/** Parses Retry-After: seconds or a date. */
function millisecondsOf(after: string | null): number | undefined {
  if (after === null) return undefined;
  const ms = /^\d+$/.test(after) ? Number(after) * 1000 : Date.parse(after) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** The error to throw for an error of a request: the reason of its abort, or a ClientError. */
export function failure(thrown: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  if (thrown instanceof ClientError) return thrown;
  // Node has the reason of a failed connection in the cause; browsers do not reveal it.
  const { message, cause } = thrown instanceof Error ? thrown : { message: String(thrown), cause: undefined };
  const reason = cause instanceof Error && cause.message !== '' ? cause.message : message;
  return broken('network', `No connection: ${reason}`, thrown);
}
