import { StringDecoder } from 'node:string_decoder';
import type { FastifyInstance } from 'fastify';
import { fail } from '../core/errors.ts';
import { JsonSize } from './json-size.ts';

interface BodyLimits {
  /** JSON values of a body: list items, object members, and the lists and objects themselves. */
  readonly bodyValues: number;
}

/**
 * Takes JSON bodies and nothing else; one without a content type, too, where there is no `Origin` header. An empty one
 * is no body: ACP clients send `Content-Type: application/json` with nothing in it when they cancel.
 */
export function acceptJson(app: FastifyInstance, { bodyValues }: BodyLimits): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  // ACP's Python client names no type. A page of another origin can send a body without one as well, unasked, but not
  // without an Origin.
  app.addHook('onRequest', ({ headers }, _reply, next) => {
    if (headers.origin === undefined) headers['content-type'] ??= 'application/json';
    next();
  });
  app.addContentTypeParser(/^application\/([\w.-]+\+)?json\b/i, (request, payload, done) => {
    const encoding = request.headers['content-encoding'] ?? 'identity';
    if (encoding.toLowerCase() !== 'identity') return done(fail('content_encoding', encoding));
    const { bodyLimit } = request.routeOptions;
    const length = Number(request.headers['content-length']);
    if (length > bodyLimit) return done(fail('body_too_large'));
    readText(payload, { length, maxBytes: bodyLimit }, new JsonSize(bodyValues)).then((text) => {
      if (text.trim() === '') return done(null, undefined);
      parse(request, text, (error, value) => {
        if (error === null) done(null, value);
        else done(fail('body_not_json', error.message.replace(/\.$/, '')));
      });
    }, done);
  });
}

/** Decodes and measures each piece as it comes, so that even a large body takes the event loop a little at a time. */
function readText(
  payload: NodeJS.ReadableStream,
  { length, maxBytes }: { readonly length: number; readonly maxBytes: number },
  size: JsonSize,
): Promise<string> {
  return new Promise((resolve, reject) => {
    // Most bodies are one piece, for which it would cost more than all the rest here.
    let decoder: StringDecoder | undefined;
    let text = '';
    let bytes = 0;
    let refused: unknown;
    payload.on('data', (piece: Buffer | string) => {
      const chunk = typeof piece === 'string' ? Buffer.from(piece) : piece;
      bytes += chunk.length;
      if (bytes > maxBytes) reject(fail('body_too_large'));
      if (refused !== undefined || bytes > maxBytes) return;
      try {
        size.add(chunk);
        const whole = decoder === undefined && chunk.length === length;
        if (!whole) decoder ??= new StringDecoder('utf8');
        text += decoder?.write(chunk) ?? chunk.toString();
      } catch (error) {
        // Read to its end all the same: a client that is still sending would not see the answer.
        refused = error;
        text = '';
      }
    });
    payload.on('end', () => (refused === undefined ? resolve(text + (decoder?.end() ?? '')) : reject(refused)));
    payload.on('error', () => reject(fail('bad_request', 'The body was cut short.')));
  });
}
