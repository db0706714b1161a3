import { describe, expect, it } from 'vitest';
import { eventFrames } from '../../src/http/respond.ts';
import { frame } from '../../src/http/sse/frames.ts';
import { Projector } from '../../src/http/sse/projection.ts';

describe('an SSE frame', () => {
  it('has an id, one data line and an empty line, with LF only', () => {
    expect(frame(7, '{"a":1}')).toBe('id: 7\ndata: {"a":1}\n\n');
  });
});

describe('the frames of a batch', () => {
  const batch = (first: number, chars = 1) => ({ first, lines: ['a'.repeat(chars), 'b'] });
  const framesOf = (one: ReturnType<typeof batch>) => new Projector(eventFrames).piecesOf(one);

  it('are built once for all readers, with ids that continue from its first', () => {
    const one = batch(3);
    expect(framesOf(one)).toEqual([{ text: 'id: 3\ndata: a\n\nid: 4\ndata: b\n\n', bytes: 30 }]);
    expect(framesOf(one)).toBe(framesOf(one));
  });

  it('are cut into pieces, with a long event in a piece of its own', () => {
    const long = 20_000;
    const pieces = framesOf(batch(1, long));
    expect(pieces.map(({ text }) => text === frame(1, 'a'.repeat(long)) || text)).toEqual([true, frame(2, 'b')]);
  });
});
