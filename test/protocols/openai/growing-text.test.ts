import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { noText } from '../../../src/protocols/openai/growing-text.ts';

const pieces = fc.array(fc.string({ maxLength: 700 }), { maxLength: 12 });

describe('a text that grows', () => {
  it('is all of its pieces in order, and each text before it stays as it was', () => {
    fc.assert(
      fc.property(pieces, (all) => {
        const texts = [noText];
        for (const piece of all) texts.push((texts.at(-1) ?? noText).add(piece));
        for (const [count, text] of texts.entries()) {
          const whole = all.slice(0, count).join('');
          expect([text.whole, text.isEmpty]).toEqual([whole, whole === '']);
        }
      }),
    );
  });
});
