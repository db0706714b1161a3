import type { FastifyInstance } from 'fastify';

/** A Content-Security-Policy with these directives. */
const policy = (...directives: string[]): string =>
  ["default-src 'none'", ...directives, "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"].join('; ');

/** For the playground. It shows the output of agents, so it runs only its own scripts and calls only its own server. */
export const playgroundPolicy = policy(
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
);

/** For the API reference, whose library adds inline styles. */
export const docsPolicy = policy(
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
);

/** For the guide, whose pages are static. Their search reads its index from the server. */
export const guidePolicy = policy("script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'");

// Fastify keeps names of headers in lower case.
export const securityHeaders = {
  // A response that a browser opens as a page must not run scripts, be framed or be interpreted as another type.
  'content-security-policy': policy(),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  // A page of another origin must not load it as an image or a script, for which browsers send no preflight.
  'cross-origin-resource-policy': 'same-origin',
};

/** Adds security headers to every response. Pages replace the policy with their own. */
export function secure(app: FastifyInstance): void {
  app.addHook('onRequest', (_request, reply, next) => {
    reply.headers(securityHeaders);
    next();
  });
}
