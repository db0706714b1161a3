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
 * Everything that goes wrong with a call. `code`, `message` and `data` are the server's where it answered with an Error
 * object. The client's own codes: `network` (no connection, or it broke), `silent` (nothing came for too long),
 * `interrupted` (a stream ended before its run), `headers` (the headers' function threw), `not_understood` (the answer
 * is not one of a Rivulet server), `redirected` (the server named another address), `event_too_large`.
 */
export class ClientError extends Error {
  override readonly name = 'ClientError';
  readonly code: string;
  /** HTTP status of the answer; 0 where there was none, or its stream broke. */
  readonly status: number;
  readonly data: unknown;
  /** Milliseconds that the server wants to be left alone for. */
  readonly retryAfter: number | undefined;

  constructor({ code, message, status, data, retryAfter, cause }: ClientErrorFields) {
    super(message, cause === undefined ? {} : { cause });
    this.code = code;
    this.status = status;
    this.data = data;
    this.retryAfter = retryAfter;
  }

  /** Whether the same call may work a little later. */
  get retryable(): boolean {
    return [0, 408, 429].includes(this.status) || this.status >= 500;
  }
}

/** There was no answer, or it broke off; the same call may work later. */
export const broken = (code: string, message: string, cause?: unknown): ClientError =>
  new ClientError({ code, status: 0, message, cause });

/** What answered is not a Rivulet server, or a broken one. */
export const notUnderstood = (message: string, status = 200): ClientError =>
  new ClientError({ code: 'not_understood', status, message });

/** The most precise name of an error: the code that the agent gave it, the server's reason, or the protocol's code. */
export function reasonOf({ code, data }: ErrorBody): string {
  const precise = data?.code ?? data?.reason;
  return typeof precise === 'string' ? precise : code;
}

/** The error of an answer that is not 2xx, whose body was read to `text`. Pages of HTML, as proxies send them, are left out. */
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

/** Retry-After is seconds or a date. */
function millisecondsOf(after: string | null): number | undefined {
  if (after === null) return undefined;
  const ms = /^\d+$/.test(after) ? Number(after) * 1000 : Date.parse(after) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** What to throw for something that a request threw: the reason of its abort, or a ClientError. */
export function failure(thrown: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  if (thrown instanceof ClientError) return thrown;
  // Node hides why a connection failed in the cause; browsers tell nobody.
  const { message, cause } = thrown instanceof Error ? thrown : { message: String(thrown), cause: undefined };
  const why = cause instanceof Error && cause.message !== '' ? cause.message : message;
  return broken('network', `No connection: ${why}`, thrown);
}
