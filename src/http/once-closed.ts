import type { FastifyReply } from 'fastify';

/**
 * Calls back once, when the response or its connection closes. Returns an unsubscribe function. The response to a
 * pipelined request has no connection until the earlier responses have ended, and emits no `close` before.
 */
export function onceClosed({ raw, request }: FastifyReply, callback: () => void): () => void {
  const { socket } = request.raw;
  let subscribed = true;
  const unsubscribe = (): void => {
    subscribed = false;
    raw.off('close', closed);
    socket.off('close', closed);
  };
  const closed = (): void => {
    // The socket calls its listeners of that moment, and one of them closes the response.
    if (!subscribed) return;
    unsubscribe();
    callback();
  };
  raw.on('close', closed);
  socket.on('close', closed);
  return unsubscribe;
}
