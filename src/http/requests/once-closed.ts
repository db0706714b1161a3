import type { FastifyInstance, FastifyReply } from 'fastify';

declare module 'fastify' {
  interface FastifyReply {
    /**
     * What is called when the response closes. All share its listeners, because several parts wait for the end of each. One
     * listener for a whole connection would be called before the one of Node's that closes its response.
     */
    closeCallbacks: Set<() => void> | undefined;
  }
}

/** Gives replies the field that `onceClosed` uses. */
export function allowCloseCallbacks(app: FastifyInstance): void {
  app.decorateReply('closeCallbacks', undefined);
}

/**
 * Calls back once, when the response or its connection closes, or soon where the client has left before. Returns an
 * unsubscribe function. The response to a pipelined request has no connection until the earlier responses have ended,
 * and emits no `close` before.
 */
export function onceClosed(reply: FastifyReply, callback: () => void): () => void {
  reply.closeCallbacks ??= listen(reply);
  const callbacks = reply.closeCallbacks;
  callbacks.add(callback);
  // Its listeners may have been called before.
  if (reply.request.raw.socket.destroyed) process.nextTick(() => callbacks.delete(callback) && callback());
  return () => void callbacks.delete(callback);
}

function listen({ raw, request }: FastifyReply): Set<() => void> {
  const callbacks = new Set<() => void>();
  const { socket } = request.raw;
  const closed = (): void => {
    socket.off('close', closed);
    // The socket calls its listeners of that moment, and one of them closes the response.
    for (const callback of callbacks) {
      callbacks.delete(callback);
      callback();
    }
  };
  raw.on('close', closed);
  socket.on('close', closed);
  return callbacks;
}
