import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';

/** Characters of one piece. */
const pieceChars = 64 * 1024;
/** An answer of fewer characters is written at once. */
const largeChars = 4 * pieceChars;

/**
 * Writes a large text piece by piece, each when its client has read the one before: to encode all of it would hold the event
 * loop, and keep a second copy until the client has read it.
 */
export function writeInPieces(app: FastifyInstance): void {
  app.addHook('onSend', (request, _reply, payload, next) => {
    if (typeof payload !== 'string' || payload.length < largeChars || request.method === 'HEAD') return next();
    next(null, Readable.from(piecesOf(payload), { objectMode: false }));
  });
}

function* piecesOf(text: string): Generator<string> {
  let from = 0;
  while (from < text.length) {
    let to = from + pieceChars;
    // Two halves of a character stay together: each alone would be encoded as a replacement.
    if (isHighSurrogate(text.charCodeAt(to - 1))) to += 1;
    yield text.slice(from, to);
    from = to;
  }
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;
