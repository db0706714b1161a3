/** Streams that hold after their first token. */
import { type Expected, stream } from './stream.ts';

export interface Held {
  /** Settles when all have ended. */
  readonly ended: Promise<unknown>;
}

/** Opens many, so many at a time; resolves when each has had its first token. */
export async function hold(count: number, expected: Expected, atOnce = 100): Promise<Held> {
  const streams: Promise<unknown>[] = [];
  while (streams.length < count) {
    const wave = Array.from({ length: Math.min(atOnce, count - streams.length) }, () => {
      let had = (): void => {};
      const first = new Promise<void>((resolve) => {
        had = resolve;
      });
      const ended = stream({ ...expected, onFirst: had });
      streams.push(ended);
      // A stream that fails before its first token ends the wait for it.
      return Promise.race([first, ended]);
    });
    await Promise.all(wave);
  }
  const ended = Promise.all(streams);
  // Whoever awaits it may be busy with something else when one of them fails.
  ended.catch(() => {});
  return { ended };
}
