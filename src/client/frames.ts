import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { ClientError, notUnderstood } from './client-error.ts';
import { type IdleTimeout, readChunks } from './idle-timeout.ts';

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
