import type { Socket } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { fail, RivuletError } from '../core/errors.ts';

/** Whatever was thrown, as an error of the table. What is not the client's doing becomes `unforeseen`. */
function toRivuletError(error: unknown, request: FastifyRequest): RivuletError {
  if (error instanceof RivuletError) return error;
  const { statusCode, message } = asFastifyError(error);
  if (statusCode === 413) return fail('body_too_large');
  if (statusCode === 415) return fail('media_type', request.headers['content-type'] ?? 'no content type');
  if (statusCode === 429) return fail('rate_limited');
  if (statusCode === 404) return fail('route_unknown', request.method, request.url);
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) return fail('bad_request', message);
  return fail('unforeseen', request.id);
}

const asFastifyError = (error: unknown): Partial<FastifyError> & { message: string } =>
  error instanceof Error ? error : { message: 'no reason given' };

/** Answers every error of a request as an Error object. */
export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const known = toRivuletError(error, request);
  if (known.status === 503) request.log.warn({ err: known.cause }, known.message);
  else if (known.status >= 500) request.log.error({ err: error }, known.message);
  if (known.status === 503) reply.header('Retry-After', '1');
  reply.code(known.status).type('application/json; charset=utf-8').send(JSON.stringify(known));
}

/** For paths that do not exist. */
export function handleNotFound(request: FastifyRequest, reply: FastifyReply): void {
  handleError(fail('route_unknown', request.method, request.url.split('?', 1)[0] ?? ''), request, reply);
}

/** For what is not even HTTP: answers on the bare socket, since there is no request yet. */
export function handleClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const known =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? fail('header_overflow')
      : fail('bad_request', 'The request is not valid HTTP.');
  const body = JSON.stringify(known);
  socket.end(
    `HTTP/1.1 ${known.status} Bad Request\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
const methods: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Collects the routes registered from now on; `refuse` then makes their other methods answer 405. */
export function collectMethods(app: FastifyInstance): { refuse(): void } {
  const taken = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ routePath, method }) => {
    const known = taken.get(routePath) ?? new Set();
    for (const one of [method].flat()) known.add(one);
    taken.set(routePath, known);
  });
  return {
    refuse() {
      for (const [url, known] of [...taken]) {
        const allowed = [...known].join(', ');
        app.route({
          url,
          method: methods.filter((method) => !known.has(method)),
          schema: { hide: true },
          handler: (request, reply) => {
            reply.header('Allow', allowed);
            throw fail('method_unknown', request.method, request.url, allowed);
          },
        });
      }
    },
  };
}
