/** Streams that wait after their first token until the contestant releases them. */
import { type Expected, stream } from './stream.ts';

export interface Held {
  /** Settles when all have ended. */
  readonly ended: Promise<unknown>;
}

/** Opens `count` streams, `atOnce` at a time. Resolves when each has had its first token. */
export async function hold(count: number, expected: Expected, atOnce = 100): Promise<Held> {
  const streams: Promise<unknown>[] = [];
  while (streams.length < count) {
    const wave = Array.from({ length: Math.min(atOnce, count - streams.length) }, () => {
      let resolveFirst = (): void => {};
      const first = new Promise<void>((resolve) => {
        resolveFirst = resolve;
      });
      const ended = stream({ ...expected, onFirst: resolveFirst });
      streams.push(ended);
      // A stream that fails before its first token ends the wait for it.
      return Promise.race([first, ended]);
    });
    await Promise.all(wave);
  }
  const ended = Promise.all(streams);
  // The caller may not await `ended` yet when a stream fails.
  ended.catch(() => {});
  return { ended };
}
