import { StringDecoder } from 'node:string_decoder';
import type { FastifyInstance } from 'fastify';
import { errorOf, fail, type RivuletError } from '../../core/errors.ts';
import { ignored } from '../../engine/unhandled.ts';
import { JsonSize } from './json-size.ts';

/**
 * Types whose body is one JSON value: `application/json`, and those that end with `+json`. A patch is a list of changes,
 * which no route applies.
 */
const jsonType = /^application\/(?!(json|merge)-patch\+)([\w.-]+\+)?json\s*(;|$)/i;
/** A charset of which UTF-8 is no superset: its bytes would be read as wrong characters. */
const otherCharset = /;\s*charset\s*=\s*(?!"?(utf-?8|us-ascii)"?\s*(;|$))/i;

interface BodyLimits {
  /** JSON values of a body: list items, object members, and the lists and objects themselves. */
  readonly bodyValues: number;
}

/**
 * Accepts only JSON bodies, also without a content type where the request has no `Origin` header. An empty body counts
 * as none: ACP clients send `Content-Type: application/json` with an empty body when they cancel.
 */
export function acceptJson(app: FastifyInstance, { bodyValues }: BodyLimits): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  // ACP's Python client sends no content type. A page of another origin can do so without a preflight, but not without
  // an `Origin` header.
  app.addHook('onRequest', ({ headers }, _reply, next) => {
    if (headers.origin === undefined) headers['content-type'] ??= 'application/json';
    next();
  });
  app.addContentTypeParser(jsonType, (request, payload, done) => {
    const { 'content-encoding': encoding = 'identity', 'content-type': type = '' } = request.headers;
    if (otherCharset.test(type)) return done(fail('media_type', type));
    if (encoding.toLowerCase() !== 'identity') return done(fail('content_encoding', encoding));
    const { bodyLimit } = request.routeOptions;
    const length = Number(request.headers['content-length']);
    if (length > bodyLimit) return done(fail('body_too_large'));
    readText(payload, { length, maxBytes: bodyLimit }, new JsonSize(bodyValues), (refusal, text) => {
      if (refusal !== undefined) return done(refusal);
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

/**
 * Decodes and measures each chunk on arrival, so that even a large body blocks the event loop only briefly. Calls back once.
 * Its listeners are removed at the end: with them, a request would keep its body for as long as its stream is open.
 */
function readText(
  payload: NodeJS.ReadableStream,
  { length, maxBytes }: { readonly length: number; readonly maxBytes: number },
  size: JsonSize,
  done: (refusal: Error | undefined, text: string) => void,
): void {
  // Most bodies are one chunk, for which a decoder would cost more than the rest of this function.
  let decoder: StringDecoder | undefined;
  /** After a refusal, the rest is read and dropped: a client that is still sending would not see the response. */
  let state: 'reading' | 'settled' | { readonly refusal: Error } = 'reading';
  let text = '';
  let bytes = 0;
  const settle = (refusal?: Error): void => {
    if (state === 'settled') return;
    state = 'settled';
    done(refusal, text);
  };
  const onData = (data: Buffer | string): void => {
    const chunk = typeof data === 'string' ? Buffer.from(data) : data;
    bytes += chunk.length;
    if (bytes > maxBytes) settle(fail('body_too_large'));
    if (state !== 'reading') return;
    try {
      size.add(chunk);
      const whole = decoder === undefined && chunk.length === length;
      if (!whole) decoder ??= new StringDecoder('utf8');
      text += decoder?.write(chunk) ?? chunk.toString();
    } catch (error) {
      state = { refusal: error instanceof Error ? error : new Error(String(error)) };
      text = '';
    }
  };
  // Called with an error where the payload fails instead of ending.
  const onEnd = (failure?: Error): void => {
    payload.off('data', onData).off('end', onEnd).off('error', onEnd);
    // A payload that a hook of the app has replaced may fail after its end, which would end the process.
    payload.on('error', ignored);
    text += decoder?.end() ?? '';
    if (failure !== undefined) settle(fail('bad_request', 'The body was cut short.'));
    else settle(typeof state === 'object' ? state.refusal : undefined);
  };
  payload.on('data', onData).on('end', onEnd).on('error', onEnd);
}
