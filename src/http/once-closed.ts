import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';

/** The callbacks of each response. They share its listeners, because several parts wait for the end of each. */
const waiting = new WeakMap<ServerResponse, Set<() => void>>();
/** What ends the responses of each connection that are not closed. One listener a connection, not one a request. */
const responses = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls back once, when the response or its connection closes. Returns an unsubscribe function. The response to a
 * pipelined request has no connection until the earlier responses have ended, and emits no `close` before.
 */
export function onceClosed(reply: FastifyReply, callback: () => void): () => void {
  const callbacks = waiting.get(reply.raw) ?? listen(reply);
  callbacks.add(callback);
  return () => void callbacks.delete(callback);
}

function listen({ raw, request }: FastifyReply): Set<() => void> {
  const callbacks = new Set<() => void>();
  waiting.set(raw, callbacks);
  const ofConnection = responses.get(request.raw.socket) ?? watch(request.raw.socket);
  const closed = (): void => {
    raw.off('close', closed);
    ofConnection.delete(closed);
    for (const callback of callbacks) {
      callbacks.delete(callback);
      callback();
    }
  };
  raw.on('close', closed);
  ofConnection.add(closed);
  return callbacks;
}

function watch(socket: Socket): Set<() => void> {
  const ends = new Set<() => void>();
  responses.set(socket, ends);
  socket.on('close', () => {
    for (const end of ends) end();
  });
  return ends;
}
