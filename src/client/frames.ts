import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { chunks } from './chunks.ts';
import { ClientError, notUnderstood } from './client-error.ts';
import type { Watchdog } from './watchdog.ts';

/** Characters of one event; a run's last one carries all of its output. What is longer is not read to its end. */
const maxChars = 64 * 1024 * 1024;

/**
 * The frames of an answer, as many at a time as came together; comments are left out. `onRetry` is given the milliseconds
 * that the server asks for between connections. Letting go of it lets go of the connection, and
 * while nobody asks for more, nothing is read: the server's log is the buffer.
 * @throws ClientError `event_too_large`, `not_understood`, and what the watchdog throws
 */
export async function* frames(
  response: Response,
  watchdog: Watchdog,
  onRetry: (retry: number) => void,
  limit = maxChars,
): AsyncGenerator<EventSourceMessage[], void, undefined> {
  const { body, status } = response;
  if (body === null || !response.headers.get('Content-Type')?.startsWith('text/event-stream')) {
    await body?.cancel();
    throw notUnderstood(`${response.url} answered something that is not an event stream; is there a Rivulet?`, status);
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
  for await (const chunk of chunks(body, watchdog)) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (complete.length === 0) continue;
    yield complete;
    complete = [];
  }
}
