import type { Server } from 'node:http';

/** How often connections that have become idle are closed, and when the others are, in milliseconds. */
const sweepEvery = 20;
const patience = 5_000;

/**
 * Lets a server that is about to close get there. Node closes only the connections that are idle at that
 * moment; one whose stream has just ended would be kept alive for minutes, and one that sent half a request for ever.
 */
export function closeConnections(server: Server): void {
  if (!server.listening) return;
  const sweep = setInterval(() => server.closeIdleConnections(), sweepEvery);
  const end = setTimeout(() => server.closeAllConnections(), patience);
  server.once('close', () => {
    clearInterval(sweep);
    clearTimeout(end);
  });
}
