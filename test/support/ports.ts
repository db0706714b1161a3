import { createServer } from 'node:net';

/**
 * A free port below the range that outgoing connections take theirs from: while whoever listens there is down, nobody
 * else gets it, not even one of those who try to connect to it.
 */
export async function steadyPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer();
      probe.once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
