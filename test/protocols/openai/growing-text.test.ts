import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GrowingText } from '../../../src/protocols/openai/growing-text.ts';

const pieces = fc.array(
  fc.string({ maxLength: 700 }).map((text) => JSON.stringify(text).slice(1, -1)),
  { maxLength: 12 },
);

describe('a text that grows', () => {
  it('is all of its pieces in order', () => {
    fc.assert(
      fc.property(pieces, (all) => {
        const text = new GrowingText();
        for (const [index, piece] of all.entries()) {
          text.add(piece);
          expect(text.whole).toBe(all.slice(0, index + 1).join(''));
        }
      }),
    );
  });
});
