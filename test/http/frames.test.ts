import { describe, expect, it } from 'vitest';
import { eventFrames } from '../../src/http/requests/respond.ts';
import { frame, Piece } from '../../src/http/sse/frames.ts';
import { Projector } from '../../src/http/sse/projection.ts';

describe('an SSE frame', () => {
  it('has one data line, an id and an empty line, with LF only', () => {
    expect(frame(7, '{"a":1}')).toBe('data: {"a":1}\nid: 7\n\n');
  });
});

describe('the frames of a batch', () => {
  const batch = (first: number, chars = 1) => ({ first, lines: ['a'.repeat(chars), 'b'] });
  const framesOf = (one: ReturnType<typeof batch>) => new Projector(eventFrames).piecesOf(one);

  it('are built once for all readers, with ids that continue from its first', () => {
    const one = batch(3);
    const text = 'data: a\nid: 3\n\ndata: b\nid: 4\n\n';
    expect(framesOf(one)).toEqual([new Piece(text)]);
    expect(framesOf(one)[0]?.text).toBe(text);
    expect(framesOf(one)).toBe(framesOf(one));
  });

  it.each([
    ['ASCII', 'data: a\r\n\n\n', 'b', 'latin1'],
    ['any other text', 'data: é\n\n', 'a', 'utf8'],
  ])('are a chunk of HTTP/1.1 that gives its length in bytes, for %s', (_what, text, length, encoding) => {
    expect(new Piece(text)).toEqual({ chunk: `${length}\r\n${text}\r\n`, encoding });
    expect(new Piece(text).text).toBe(text);
  });

  it('are cut into pieces, with a long event in a piece of its own', () => {
    const long = 20_000;
    const pieces = framesOf(batch(1, long));
    expect(pieces.map(({ text }) => text === frame(1, 'a'.repeat(long)) || text)).toEqual([true, frame(2, 'b')]);
  });
});
