import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** A request creates a run, or lets one work again; both are limited for each owner. */
export type Work = 'creates' | 'resumes';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * What the requests of a route do. A function tells it from the body, where one route has several operations. It reads the
     * body as the handler does: where they differ, a client escapes the limits.
     */
    work?: Work | ((body: unknown) => Work | undefined);
  }
}

/** What is known of a request when it is checked. */
export interface Checked {
  readonly work: Work | undefined;
  /** Whether the request was checked before its body was read. Only the body of such a request has told its work. */
  readonly again: boolean;
}

/** What a request does. Where the body tells it, only after the body is read. */
export function workOf({ routeOptions, body }: FastifyRequest): Work | undefined {
  const { work } = routeOptions.config;
  return typeof work === 'function' ? work(body) : work;
}

type Check = (checked: Checked, request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * Checks each request before its body is read, so that a body which is refused counts as well. A request whose body tells
 * that it makes a run work is checked again then.
 */
export function checkWork(app: FastifyInstance, check: Check): void {
  app.addHook('onRequest', async (request, reply) => {
    const { work } = request.routeOptions.config;
    await check({ work: typeof work === 'function' ? undefined : work, again: false }, request, reply);
  });
  app.addHook('preHandler', async (request, reply) => {
    const told = typeof request.routeOptions.config.work === 'function' ? workOf(request) : undefined;
    if (told !== undefined) await check({ work: told, again: true }, request, reply);
  });
}
