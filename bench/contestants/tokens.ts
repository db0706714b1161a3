/** The work that all contestants do: emit `n` short tokens, ten a turn of the event loop unless paced or held. */
export const token = (n: number): string => `token ${n} `;

/** Tokens emitted in one turn: a model's answer comes in pieces, and a piece is rarely one token. */
const burst = 10;

/** What a request asks for, as `tokens/pace`. */
export interface Asked {
  readonly tokens: number;
  /** Milliseconds between tokens; `0` for as fast as they go; `hold` to wait after the first until all are told to go on. */
  readonly pace: number | 'hold';
}

export const readAsked = (text: string): Asked => {
  const [tokens, pace] = text.split('/');
  return { tokens: Number(tokens), pace: pace === 'hold' ? pace : Number(pace ?? 0) };
};

const held = new Set<() => void>();

/** Calls back with each token; `end` after the last. Plain callbacks: the cheapest source there is. */
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

/** The same for those who pull: a model's stream, a graph's node. */
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
 * Says where it listens, and then does what the bench tells it: `usage`, `memory`, `release`. Ends with the bench.
 * `more` is told with the usage.
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
    // What is garbage depends on when it is looked at; what is held does not.
    if (message === 'memory') for (let times = 0; times < 3; times += 1) globalThis.gc?.();
    const { user, system } = process.cpuUsage(start);
    process.send?.({ cpu: user + system, memory: process.memoryUsage().rss, ...more() });
  });
}
