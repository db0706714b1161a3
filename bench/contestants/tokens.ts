/** The work of all contestants: emit short tokens, ten in a turn of the event loop unless paced or held. */
export const token = (n: number): string => `token ${n} `;

/** Tokens in one turn: a model's answer arrives in chunks, and a chunk is rarely one token. */
const burst = 10;

/** A requested stream, from the text `tokens/pace`. */
export interface Asked {
  readonly tokens: number;
  /** Milliseconds between tokens; `0` for no delay; `hold` to wait after the first until all streams are released. */
  readonly pace: number | 'hold';
}

export const readAsked = (text: string): Asked => {
  const [tokens, pace] = text.split('/');
  return { tokens: Number(tokens), pace: pace === 'hold' ? pace : Number(pace ?? 0) };
};

const held = new Set<() => void>();

/** Calls `next` with each token, and `end` after the last. Plain callbacks are the cheapest source. */
export function emit({ tokens, pace }: Asked, next: (token: string) => void, end: () => void): void {
  let n = 0;
  const turn = (): void => {
    for (let left = burst; left > 0 && n < tokens; left -= 1) next(token(n++));
    if (n < tokens) setImmediate(turn);
    else end();
  };
  if (pace === 'hold') {
    next(token(n++));
    held.add(turn);
  } else if (pace > 0) {
    const timer = setInterval(() => {
      next(token(n++));
      if (n < tokens) return;
      clearInterval(timer);
      end();
    }, pace);
  } else {
    setImmediate(turn);
  }
}

/** The same as a stream to pull from, for the contestants that need one. */
export function tokensOf(text: string): ReadableStream<string> {
  return new ReadableStream({
    start: (controller) =>
      emit(
        readAsked(text),
        (one) => controller.enqueue(one),
        () => controller.close(),
      ),
  });
}

/**
 * Prints the port, and answers the messages of the bench: `usage`, `memory`, `release`. Exits with the bench. `more`
 * adds to the reported usage.
 */
export function report(port: number, more: () => object = () => ({})): void {
  const start = process.cpuUsage();
  process.stdout.write(`listening ${port}\n`);
  process.on('disconnect', () => process.exit());
  process.on('message', (message) => {
    if (message === 'release') {
      for (const turn of held) setImmediate(turn);
      held.clear();
      return;
    }
    // Collects garbage, so that the result does not depend on when it is measured.
    if (message === 'memory') for (let times = 0; times < 3; times += 1) globalThis.gc?.();
    const { user, system } = process.cpuUsage(start);
    const { rss, heapUsed } = process.memoryUsage();
    process.send?.({ cpu: user + system, memory: rss, heap: heapUsed, ...more() });
  });
}
