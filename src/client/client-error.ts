import type { ErrorBody } from '../schema/error.ts';
import type { Run } from '../schema/run.ts';
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
  declare readonly code: string;
  /** HTTP status of the response; 0 if there was none, or its stream broke. */
  declare readonly status: number;
  declare readonly data: unknown;
  /** Milliseconds to wait before a retry, from `Retry-After`. */
  declare readonly retryAfter: number | undefined;

  constructor({ message, cause, code, status, data, retryAfter }: ClientErrorFields) {
    super(message, cause === undefined ? {} : { cause });
    Object.assign(this, { code, status, data, retryAfter });
  }

  /** Whether the same call may succeed later. */
  get retryable(): boolean {
    return [0, 408, 429].includes(this.status) || this.status >= 500;
  }
}

/** There was no response, or it broke off; the same call may succeed later. */
export const broken = (code: string, message: string, cause?: unknown): ClientError =>
  new ClientError({ code, status: 0, message, cause });

/**
 * Whether a request may have arrived although its answer has not, so that it may be sent again. False after a time-out,
 * because the caller has set how long to wait.
 */
export const isLost = (error: unknown): boolean => error instanceof ClientError && error.code === 'network';

/** The error of a failed run. Status 200, because the call succeeded: a retry would not help. */
export const runFailure = ({ error = { code: 'server_error', message: 'The run failed.' } }: Run): ClientError =>
  new ClientError({ ...error, status: 200 });

/** `what` is not from a Rivulet server. */
export const notUnderstood = (what: string, status = 200): ClientError =>
  new ClientError({
    code: 'not_understood',
    status,
    message: `The server sent something unknown (${what}); is it a Rivulet server?`,
  });

/** The most specific name of an error: the agent's code, the server's reason, or the protocol's code. */
export function reasonOf({ code, data }: ErrorBody): string {
  const specific = data?.code ?? data?.reason;
  return typeof specific === 'string' ? specific : code;
}

/** The error of a response that is not 2xx, with `text` as its body. The HTML pages of proxies are left out. */
export function refusal({ status, statusText, headers }: Response, text: string): ClientError {
  // Browsers hide the status and the target of a redirect that is not followed; the status is 0.
  if (status < 400) {
    const message = `The server redirects to ${headers.get('Location') ?? 'another URL'}.`;
    return new ClientError({ code: 'redirected', status: status || 302, message });
  }
  let error: Pick<ClientErrorFields, 'code' | 'message' | 'data'> = {
    code: 'not_understood',
    message: `${status} ${statusText}`.trim(),
  };
  try {
    const body = JSON.parse(text);
    if (isError(body)) error = body;
  } catch {}
  const { code, message, data } = error;
  // Seconds, or a date.
  const after = headers.get('Retry-After') ?? '';
  const ms = /^\d+$/.test(after) ? Number(after) * 1000 : Date.parse(after) - Date.now();
  return new ClientError({ code, message, status, data, retryAfter: ms >= 0 ? ms : undefined });
}

/** The error to throw for an error of a request: the reason of its abort, or a ClientError. */
export function failure(thrown: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  if (thrown instanceof ClientError) return thrown;
  // Node has the reason of a failed connection in the cause; browsers do not reveal it.
  const { message = thrown, cause } = Object(thrown);
  return broken('network', `No connection: ${cause?.message || message}`, thrown);
}
