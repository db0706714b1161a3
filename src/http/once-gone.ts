import type { FastifyReply } from 'fastify';

/**
 * Calls back once, when the response has closed or its connection has; returns how not to. A response whose
 * request was pipelined has no connection before the earlier ones have ended, and never tells of its close.
 */
export function onceGone({ raw, request }: FastifyReply, callback: () => void): () => void {
  const { socket } = request.raw;
  const forget = (): void => {
    raw.off('close', gone);
    socket.off('close', gone);
  };
  const gone = (): void => {
    forget();
    callback();
  };
  raw.on('close', gone);
  socket.on('close', gone);
  return forget;
}
