import type { FastifyInstance, FastifyReply } from 'fastify';

/**
 * Tells caches to keep no answer. Most answers belong to one caller, and a cache does not know the headers that name the
 * caller. A route whose answers may be kept sets a `Cache-Control` of its own.
 */
export function forbidCaching(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, next) => {
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store');
    if (request.routeOptions.config.streams === true) addVary(reply, 'Accept');
    next();
  });
}

/** Adds the name of a request header to `Vary`. Other hooks may have added theirs, as CORS does with `Origin`. */
export function addVary(reply: FastifyReply, name: string): void {
  const names = [reply.getHeader('vary') ?? []].flat();
  reply.header('vary', [...names, name].join(', '));
}
