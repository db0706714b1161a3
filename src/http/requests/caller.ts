import type { FastifyInstance, FastifyRequest } from 'fastify';
import { operator, type Principal } from '../../core/principal.ts';
import type { Access } from '../../engine/access.ts';
import type { Engine } from '../../engine/engine.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller. Undefined where authentication is off, and until it has seen the request. */
    principal: Principal | undefined;
  }
}

/** What the principal of a request may do. @throws Error if the request was not authenticated */
export type AccessOf = (request: FastifyRequest) => Access;

/** Finds the caller of each request: the operator, unless an authentication has to name it. */
export function identifyCallers(app: FastifyInstance, engine: Engine, authenticated: boolean): AccessOf {
  app.decorateRequest('principal', undefined);
  const unknown = authenticated ? undefined : operator;
  return ({ principal = unknown, reads }) => {
    if (principal === undefined) throw new Error('no authentication has seen this request');
    reads?.begin();
    return engine.as(principal, reads);
  };
}
