import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { ClientError } from './client-error.ts';
import type { Watchdog } from './watchdog.ts';

/** Characters of one event; a run's last one carries all of its output. What is longer is not read to its end. */
const maxChars = 64 * 1024 * 1024;

export interface FrameListener {
  /** The server's wish for the time between connections, in milliseconds. */
  onRetry(retry: number): void;
  /** There is nothing to say, but somebody there. */
  onComment(): void;
}

/**
 * The frames of an answer, as many at a time as came together. Letting go of it lets go of the connection, and
 * while nobody asks for more, nothing is read: the server's log is the buffer.
 * @throws ClientError `event_too_large`, `not_understood`, and what the watchdog throws
 */
export async function* frames(
  response: Response,
  watchdog: Watchdog,
  { onRetry, onComment }: FrameListener,
  limit = maxChars,
): AsyncGenerator<EventSourceMessage[], void, undefined> {
  const { body, status } = response;
  if (body === null || !response.headers.get('Content-Type')?.startsWith('text/event-stream')) {
    await body?.cancel();
    const message = `${response.url} answered something that is no event stream; is there a Rivulet?`;
    throw new ClientError({ code: 'not_understood', status, message });
  }
  const decoder = new TextDecoder();
  let complete: EventSourceMessage[] = [];
  const parser = createParser({
    maxBufferSize: limit,
    onEvent: (frame) => complete.push(frame),
    onRetry,
    onComment,
    onError: ({ type }) => {
      if (type !== 'max-buffer-size-exceeded') return;
      const message = `An event has more than ${limit} characters.`;
      throw new ClientError({ code: 'event_too_large', status, message });
    },
  });
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await watchdog.inTime(reader.read());
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      if (complete.length === 0) continue;
      yield complete;
      complete = [];
    }
  } finally {
    // It rejects where the connection is what failed, and that has been said.
    reader.cancel().catch(() => {});
  }
}
