import type { Socket } from 'node:net';

/**
 * Adds both sides of a proxied connection to a set. When one side is closed, it leaves the set, and the other side is
 * closed as well, or as `onClose` does it.
 */
export function joinSockets(
  sockets: Set<Socket>,
  client: Socket,
  upstream: Socket,
  onClose = (other: Socket): void => other.destroySoon(),
): void {
  const sides: [one: Socket, other: Socket][] = [
    [client, upstream],
    [upstream, client],
  ];
  for (const [one, other] of sides) {
    sockets.add(one);
    one
      .on('error', () => {})
      .on('close', () => {
        sockets.delete(one);
        onClose(other);
      });
  }
}
