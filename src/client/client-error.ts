export interface ClientErrorFields {
  readonly code: string;
  readonly message: string;
  readonly status: number;
  readonly data?: unknown;
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
}

/**
 * Whatever goes wrong with a call. `code`, `message` and `data` are the server's where it answered with an Error object.
 * The client's own codes: `network` (no connection, or it broke), `silent` (nothing came for too long), `interrupted` (a
 * stream ended before its run), `headers` (the headers' function threw), `not_understood` (that was no Rivulet),
 * `event_too_large`.
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
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

/** What an answer that is not 2xx says; reads its body. Proxies on the way answer HTML, which nobody wants to see. */
export async function refusal(response: Response): Promise<ClientError> {
  const { status, statusText, headers } = response;
  const { code = 'not_understood', message = `${status} ${statusText}`.trim(), data } = errorIn(await response.text());
  return new ClientError({ code, message, status, data, retryAfter: millisecondsOf(headers.get('Retry-After')) });
}

function errorIn(text: string): { code?: string; message?: string; data?: unknown } {
  try {
    const body = JSON.parse(text);
    return typeof body?.code === 'string' && typeof body.message === 'string' ? body : {};
  } catch {
    return {};
  }
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
  return new ClientError({ code: 'network', status: 0, message: `No connection: ${why}`, cause: thrown });
}
