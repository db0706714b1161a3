import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { fail } from '../../core/errors.ts';

/** Requests whose path cannot be decoded. */
const unreadable = new WeakSet<IncomingMessage>();

/**
 * The URL by which a request is routed. Fastify itself refuses a path that it cannot decode, and calls no hook: the checks,
 * the limits and the log would miss the request. So the request is routed with its percent signs encoded, and
 * `refuseUnreadable` refuses it.
 */
export function readableUrl(request: IncomingMessage): string {
  const { url = '/' } = request;
  if (!url.includes('%')) return url;
  const [path = '', ...query] = url.split('?');
  try {
    decodeURIComponent(path);
    return url;
  } catch {
    unreadable.add(request);
    return [path.replaceAll('%', '%25'), ...query].join('?');
  }
}

/** Refuses requests whose path cannot be decoded. Call it after the checks that such a request has to pass as well. */
export function refuseUnreadable(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, next) => {
    if (!unreadable.has(request.raw)) return next();
    next(fail('bad_request', 'The path has a percent sign that does not begin an encoded character of UTF-8.'));
  });
}
