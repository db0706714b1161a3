import type { FastifyInstance } from 'fastify';

/** A Content-Security-Policy of its directives. */
const policy = (...directives: string[]): string =>
  ["default-src 'none'", ...directives, "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"].join('; ');

/** For the playground: what agents say is shown there, so it runs no script and asks no server but its own. */
export const playgroundPolicy = policy(
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
);

/** For the page of the API's documentation, which writes styles into itself. */
export const docsPolicy = policy(
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
);

const headers = {
  // An answer that a browser opens as a page must not run, be framed or be taken for another type.
  'Content-Security-Policy': policy(),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  // Nor may a page of another origin load it as an image or a script, which needs no permission otherwise.
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** Gives every answer the headers that tell browsers what not to do with it. Pages have policies of their own. */
export function secure(app: FastifyInstance): void {
  app.addHook('onRequest', (_request, reply, next) => {
    reply.headers(headers);
    next();
  });
}
