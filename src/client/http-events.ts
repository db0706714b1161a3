import type { EventSourceMessage } from 'eventsource-parser';
import type { Event } from '../schema/event.ts';
import { broken, ClientError, notUnderstood } from './client-error.ts';
import type { Connect, Numbered, Source } from './follow.ts';
import { frames } from './frames.ts';
import { type Http, pathOf } from './http.ts';
import { IdleTimeout } from './idle-timeout.ts';
import { isEvent } from './shapes.ts';

/** Reads events as Server-Sent Events. A stream without a byte for `milliseconds` counts as broken. */
export const httpEvents = (http: Http, milliseconds: number): Connect =>
  async function* (source, signal, onRetry) {
    const idleTimeout = new IdleTimeout(signal, milliseconds);
    const response = await request(http, source, idleTimeout.signal);
    if (response.status === 204) return;
    for await (const batch of frames(response, idleTimeout, onRetry)) yield numbered(batch);
    throw broken('interrupted', 'The stream ended before its run.');
  };

// The first event has the run's id. Until it arrives, the POST is repeated with the same Idempotency-Key. The server
// creates one run, whether the connection broke before or after its response.
function request(http: Http, source: Source, signal: AbortSignal): Promise<Response> {
  const accept = { Accept: 'text/event-stream' };
  if ('begin' in source) {
    const { body, headers } = source.begin;
    return http.send('POST', 'runs', { body, headers: { ...accept, ...headers }, signal });
  }
  const headers = { ...accept, 'Last-Event-ID': String(source.after) };
  return http.send('GET', `${pathOf('runs', source.run_id)}/events`, { headers, signal });
}

/** As the server writes ids; Number() would also take `0x10`, `1e3` and nothing at all. */
const plainDecimal = /^[1-9]\d*$/;

// A generator: the events before one that is not understood are still read.
function* numbered(batch: readonly EventSourceMessage[]): Generator<Numbered, void, undefined> {
  for (const { id, data } of batch) {
    const event = parse(data);
    if (id === undefined) {
      // The server ends a stream that it cannot continue with an event that has no id.
      if (event.type === 'error') throw new ClientError({ ...event.error, status: 0 });
      throw notUnderstood('The events of the stream have no ids.');
    }
    if (!plainDecimal.test(id)) throw notUnderstood(`This is not the id of an event: ${id.slice(0, 100)}`);
    yield { id: Number(id), event };
  }
}

function parse(data: string): Event {
  try {
    const event = JSON.parse(data);
    if (isEvent(event)) return event;
  } catch {}
  throw notUnderstood(`This is not an event: ${data.slice(0, 100)}`);
}
