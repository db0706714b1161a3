import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { Event } from '../schema/event.ts';
import { broken, ClientError, notUnderstood } from './client-error.ts';
import type { Connect, FeedEvent, Followed, Numbered } from './follow.ts';
import { type Http, pathOf, query } from './http.ts';
import { IdleTimeout, readChunks } from './idle-timeout.ts';
import { isEvent } from './shapes.ts';

/** Reads events as Server-Sent Events. A stream without a byte for `milliseconds` counts as broken. */
export const httpEvents = (http: Http, milliseconds: number): Connect =>
  async function* (source, signal, onRetry) {
    const idleTimeout = new IdleTimeout(milliseconds, signal);
    const response = await request(http, source, idleTimeout.signal);
    if (response.status === 204) return;
    const unsubscribe = idleTimeout.expireAfterWake();
    try {
      for await (const batch of frames(response, idleTimeout, onRetry)) yield numbered(batch);
    } finally {
      unsubscribe();
    }
    throw broken('interrupted', 'The stream ended early.');
  };

// The first event has the run's id. Until it arrives, the POST is repeated with the same Idempotency-Key. The server
// creates one run, whether the connection broke before or after its response.
function request(http: Http, source: Followed, signal: AbortSignal): Promise<Response> {
  const accept = { Accept: 'text/event-stream' };
  if ('begin' in source) {
    const { body, headers } = source.begin;
    return http.send('POST', 'runs', { body, headers: { ...accept, ...headers }, signal });
  }
  const headers = { ...accept, 'Last-Event-ID': String(source.after) };
  const path = 'filter' in source ? `runs${query(source.filter)}` : `${pathOf('runs', source.run_id)}/events`;
  return http.send('GET', path, { headers, signal });
}

/** As the server writes ids; Number() would also take `0x10`, `1e3` and nothing at all. */
const plainDecimal = /^[1-9]\d*$/;

// A generator: the events before one that is not understood are still read.
function* numbered(batch: readonly EventSourceMessage[]): Generator<Numbered, void, undefined> {
  for (const { id = '', event: type, data } of batch) {
    const event = parse(type, data);
    // The server ends a stream that it cannot continue with an event that has no id.
    if (event.type === 'error' && id === '') throw new ClientError({ ...event.error, status: 0 });
    // In a feed, only some events have an id.
    if (type === undefined && !plainDecimal.test(id)) throw notUnderstood(`id ${id.slice(0, 100)}`);
    yield { id: Number(id), event };
  }
}

/** The events of a feed have their type in the frame. */
function parse(type: string | undefined, data: string): Event | FeedEvent {
  try {
    const event = { type, ...JSON.parse(data) };
    if (isEvent(event)) return event;
  } catch {}
  throw notUnderstood(data.slice(0, 100));
}

/** Characters of one event; the last event of a run carries all of its output. A longer one is not read to its end. */
const maxChars = 64 * 1024 * 1024;

/**
 * Reads the frames of an SSE response, in batches of those that arrived together; comments are left out. `onRetry` gets
 * the milliseconds of the `retry` field. Leaving the loop closes the connection. Nothing is read before the next batch is
 * asked for: the server's log is the buffer.
 * @throws ClientError `event_too_large`, `not_understood`, and errors of the time-out or the connection
 */
export async function* frames(
  response: Response,
  idleTimeout: IdleTimeout,
  onRetry: (retry: number) => void,
  limit = maxChars,
): AsyncGenerator<EventSourceMessage[], void, undefined> {
  const { body, status } = response;
  if (body === null || !response.headers.get('Content-Type')?.startsWith('text/event-stream')) {
    await body?.cancel();
    throw notUnderstood(response.url, status);
  }
  const decoder = new TextDecoder();
  let complete: EventSourceMessage[] = [];
  const parser = createParser({
    maxBufferSize: limit,
    onEvent: (frame) => complete.push(frame),
    onRetry,
    onError: ({ type }) => {
      if (type !== 'max-buffer-size-exceeded') return;
      const message = `An event has more than ${limit} characters.`;
      throw new ClientError({ code: 'event_too_large', status, message });
    },
  });
  for await (const chunk of readChunks(body, idleTimeout)) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (complete.length === 0) continue;
    yield complete;
    complete = [];
  }
}
