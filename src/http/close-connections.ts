import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** How often connections that have become idle are closed, and when the others are, in milliseconds. */
const sweepEvery = 20;
const patience = 5_000;

/**
 * Watches a server's connections, and returns what lets it close soon. Node closes only those that are
 * idle at that moment: one whose stream has just ended would be kept alive for minutes, and one that a
 * browser opened ahead of need, and never used, for ever.
 */
export function watchConnections(server: Server): () => void {
  const unused = new Set<Socket>();
  server.on('connection', (socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  server.on('request', ({ socket }) => unused.delete(socket));
  return () => {
    if (!server.listening) return;
    const sweep = setInterval(() => {
      server.closeIdleConnections();
      for (const socket of unused) socket.destroy();
    }, sweepEvery);
    const end = setTimeout(() => server.closeAllConnections(), patience);
    server.once('close', () => {
      clearInterval(sweep);
      clearTimeout(end);
    });
  };
}
