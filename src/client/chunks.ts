import type { Watchdog } from './watchdog.ts';

/**
 * The pieces of a body as they come. Leaving the loop lets go of the connection, and while no piece is asked for,
 * nothing is read.
 * @throws ClientError what the watchdog throws
 */
export async function* chunks(
  body: ReadableStream<Uint8Array>,
  watchdog: Watchdog,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await watchdog.inTime(reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    // It rejects where the connection is what failed, and that error was thrown already.
    reader.cancel().catch(() => {});
  }
}
