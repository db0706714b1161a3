import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Crowd } from '../core/crowd.ts';

/** How often connections that have become idle are closed, and when the others are, in milliseconds. */
const sweepEvery = 20;
const patience = 5_000;

/**
 * Watches a server's connections, and returns what lets it close soon. Node closes only those that are
 * idle at that moment: one whose stream has just ended would be kept alive for minutes, and one that a
 * browser opened ahead of need, and never used, for ever.
 */
export function watchConnections(server: Server): () => void {
  const unused = new Crowd<Socket>();
  const used = new WeakMap<Socket, () => void>();
  server.on('connection', (socket) => {
    const go = unused.add(socket);
    used.set(socket, go);
    socket.once('close', go);
  });
  server.on('request', ({ socket }) => used.get(socket)?.());
  return () => {
    if (!server.listening) return;
    const sweep = setInterval(() => {
      server.closeIdleConnections();
      for (const socket of unused.all()) socket.destroy();
    }, sweepEvery);
    const end = setTimeout(() => server.closeAllConnections(), patience);
    server.once('close', () => {
      clearInterval(sweep);
      clearTimeout(end);
    });
  };
}
