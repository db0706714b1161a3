import { connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'vitest';
import { listenOn } from './ports.ts';

export interface Weather {
  /** Milliseconds that a connection lives. */
  readonly cutAfter?: number;
  /** Milliseconds for which the server's data is buffered, and then passed on at once. */
  readonly holdBack?: number;
}

/** Starts a TCP proxy that cuts connections repeatedly, or buffers; returns its URL. */
export async function badProxy(
  { onTestFinished }: TestContext,
  port: number,
  { cutAfter, holdBack = 0 }: Weather,
): Promise<string> {
  const sockets = new Set<Socket>();
  const timers = new Set<NodeJS.Timeout>();
  const later = (milliseconds: number, what: () => void): void => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      what();
    }, milliseconds);
    timers.add(timer);
  };
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        // Passes on the buffered data first.
        if (one === client) other.destroy();
        else later(holdBack, () => other.destroySoon());
      });
    }
    client.pipe(upstream);
    let held: Buffer[] = [];
    upstream.on('data', (chunk: Buffer) => {
      held.push(chunk);
      if (held.length > 1) return;
      later(holdBack, () => {
        client.write(Buffer.concat(held));
        held = [];
      });
    });
    if (cutAfter !== undefined) later(cutAfter, () => client.resetAndDestroy());
  });
  onTestFinished(async () => {
    for (const timer of timers) clearTimeout(timer);
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return listenOn(server);
}
