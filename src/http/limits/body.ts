import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { errorOf, fail, type RivuletError } from '../../core/errors.ts';
import { checkJsonSize } from './json-size.ts';
import type { HttpLimits } from './limits.ts';

/**
 * Types whose body is one JSON value: `application/json`, and those that end with `+json`. A patch is a list of changes,
 * which no route applies.
 */
const jsonType = /^application\/(?!(json|merge)-patch\+)([\w.-]+\+)?json\s*(;|$)/i;
/** A charset of which UTF-8 is no superset: its bytes would be read as wrong characters. */
const otherCharset = /;\s*charset\s*=\s*(?!"?(utf-?8|us-ascii)"?\s*(;|$))/i;

/**
 * Accepts only JSON bodies, also without a content type where the request has no `Origin` header. An empty body counts
 * as none: ACP clients send `Content-Type: application/json` with an empty body when they cancel.
 */
export function acceptJson(app: FastifyInstance, { bodyValues }: Pick<HttpLimits, 'bodyValues'>): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  // ACP's Python client sends no content type. A page of another origin can do so without a preflight, but not without
  // an `Origin` header.
  app.addHook('onRequest', ({ headers }, _reply, next) => {
    if (headers.origin === undefined) headers['content-type'] ??= 'application/json';
    next();
  });
  // A payload that a hook of the app has replaced may fail after its end. Without a listener, that would end the process.
  app.addHook('preParsing', (_request, _reply, payload, next) => {
    payload.on('error', (error: Error) => {
      error.message = 'The body was cut short.';
    });
    next(null, payload);
  });
  app.addContentTypeParser<Buffer>(jsonType, { parseAs: 'buffer' }, (request, body, done) => {
    const { 'content-encoding': encoding = 'identity', 'content-type': type = '' } = request.headers;
    if (otherCharset.test(type)) return done(fail('media_type', type));
    if (encoding.toLowerCase() !== 'identity') return done(fail('content_encoding', encoding));
    // A decoder would replace bytes that are not UTF-8, and the run would keep a text that the client has not sent.
    if (!isUtf8(body)) return done(fail('body_not_json', 'it has bytes that are not UTF-8'));
    const text = body.toString();
    checkJsonSize(text, bodyValues);
    if (text.trim() === '') return done(null, undefined);
    parse(request, text, (error, value) => {
      if (error !== null) return done(refusalOf(text));
      if (mayOverflow.test(text) && overflows(value))
        return done(fail('body_not_json', 'a number is larger than any that a double can hold'));
      // Fastify takes it for no body.
      if (value === null) return done(fail('bad_request', 'The body is null; expected a JSON object.'));
      done(null, value);
    });
  });
}

/** Text that may have a number such as 1e999, which a parser turns into Infinity and JSON cannot express. */
const mayOverflow = /\de\+?\d{3}|(?<!\d)\d{200}/i;

function overflows(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).some(overflows);
  return value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY;
}

/** The parser of Fastify does not say what is wrong, and calls keys that it refuses no JSON. */
function refusalOf(text: string): RivuletError {
  try {
    JSON.parse(text);
  } catch (error) {
    return fail('body_not_json', errorOf(error).message.replace(/\.$/, ''));
  }
  return fail('body_not_json', 'the key "__proto__", and "prototype" in "constructor", are not accepted');
}
