import type { EventSourceMessage } from 'eventsource-parser';
import type { Event } from '../schema/event.ts';
import { broken, ClientError, notUnderstood } from './client-error.ts';
import type { Connect, Numbered, Source } from './follow.ts';
import { frames } from './frames.ts';
import { type Http, pathOf } from './http.ts';
import { isEvent } from './shapes.ts';
import { Watchdog } from './watchdog.ts';

/** Reads events as Server-Sent Events; a stream on which nothing came for `idleTimeout` milliseconds is dead. */
export const httpEvents = (http: Http, idleTimeout: number): Connect =>
  async function* (source, signal, onRetry) {
    const watchdog = new Watchdog(signal, idleTimeout);
    const response = await request(http, source, watchdog.signal);
    if (response.status === 204) return;
    for await (const together of frames(response, watchdog, onRetry)) yield numbered(together);
    throw broken('interrupted', 'The stream ended before its run.');
  };

// The first event names the run. Until it has come the POST is repeated, under the same Idempotency-Key, which
// makes one run however often it is sent; so it does not matter whether a break came before or after the answer.
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

// One at a time: events that came before one that is not understood are read.
function* numbered(together: readonly EventSourceMessage[]): Generator<Numbered, void, undefined> {
  for (const { id, data } of together) {
    const event = parse(data);
    if (id === undefined) {
      // The server's last word about a stream that it cannot go on with.
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
