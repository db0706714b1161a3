/** The work that all contestants do: emit `n` short tokens, ten a turn of the event loop unless paced. */
export const token = (n: number): string => `token ${n} `;

/** Tokens emitted in one turn: a model's answer comes in pieces, and a piece is rarely one token. */
export const burst = 10;

/** What a request asks for: how many tokens, and how many milliseconds apart (0: as fast as they go). */
export interface Work {
  readonly tokens: number;
  readonly every: number;
}

export const readWork = (text: string): Work => {
  const [tokens = '0', every = '0'] = text.split('/');
  return { tokens: Number(tokens), every: Number(every) };
};

/** Calls back with each token, a burst a turn; `end` after the last. Plain callbacks: the cheapest source there is. */
export function emit({ tokens, every }: Work, next: (token: string) => void, end: () => void): void {
  let n = 0;
  if (every > 0) {
    const timer = setInterval(() => {
      next(token(n++));
      if (n < tokens) return;
      clearInterval(timer);
      end();
    }, every);
    return;
  }
  const turn = (): void => {
    for (let left = burst; left > 0 && n < tokens; left -= 1) next(token(n++));
    if (n < tokens) setImmediate(turn);
    else end();
  };
  setImmediate(turn);
}

/** A contestant says where it listens; when it is told to stop, what it used. */
export function report(port: number): void {
  const start = process.cpuUsage();
  process.stdout.write(`listening ${port}\n`);
  process.on('message', (message) => {
    if (message !== 'usage') return;
    const { user, system } = process.cpuUsage(start);
    process.send?.({ cpu: user + system, memory: process.memoryUsage().rss });
  });
}
