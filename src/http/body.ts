import type { FastifyInstance } from 'fastify';
import { fail } from '../core/errors.ts';

/** Deeper JSON would overflow the stack of whoever encodes it again. */
const maxDepth = 100;

/**
 * Takes JSON bodies and nothing else. An empty one is no body: ACP clients send
 * `Content-Type: application/json` with nothing in it when they cancel.
 */
export function acceptJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(/^application\/([\w.-]+\+)?json\b/i, { parseAs: 'string' }, (request, body, done) => {
    const text = body.toString();
    if (text.trim() === '') return done(null, undefined);
    parse(request, text, (error, value) => {
      if (error !== null) return done(fail('body_not_json', error.message.replace(/\.$/, '')));
      if (!shallow(value, maxDepth)) return done(fail('body_too_deep', maxDepth));
      done(null, value);
    });
  });
}

function shallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (levels === 0) return false;
  for (const inner of Object.values(value)) {
    if (!shallow(inner, levels - 1)) return false;
  }
  return true;
}
