import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** A request creates a run, or lets one work again; both are limited for each owner. */
export type Work = 'creates' | 'resumes';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the requests of a route do; a function tells it from the body, where one route has several operations. */
    work?: Work | ((body: unknown) => Work | undefined);
  }
}

/** What a request does. Where the body tells it, only after the body is read. */
export function workOf({ routeOptions, body }: FastifyRequest): Work | undefined {
  const { work } = routeOptions.config;
  return typeof work === 'function' ? work(body) : work;
}

type Check = (
  work: Work | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
  next: (error?: Error) => void,
) => void;

/** Checks each request: before its body is read, unless only the body tells what it does. */
export function checkWork(app: FastifyInstance, check: Check): void {
  app.addHook('onRequest', (request, reply, next) => {
    const { work } = request.routeOptions.config;
    if (typeof work === 'function') next();
    else check(work, request, reply, next);
  });
  app.addHook('preValidation', (request, reply, next) => {
    const { work } = request.routeOptions.config;
    if (typeof work === 'function') check(work(request.body), request, reply, next);
    else next();
  });
}
