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
          text.add(index + 1, piece);
          expect(text.whole).toBe(all.slice(0, index + 1).join(''));
        }
      }),
    );
  });

  it('has each piece once, however many readers read its event', () => {
    fc.assert(
      fc.property(pieces, fc.array(fc.nat({ max: 2 })), (all, order) => {
        const text = new GrowingText();
        const read = [0, 0, 0];
        const next = (reader: number): void => {
          const event = (read[reader] ?? 0) + 1;
          if (event > all.length) return;
          text.add(event, all[event - 1] ?? '');
          read[reader] = event;
          expect(text.whole).toBe(all.slice(0, Math.max(...read)).join(''));
        };
        for (const reader of order) next(reader);
        for (const reader of [0, 1, 2]) for (const _ of all) next(reader);
        expect(text.whole).toBe(all.join(''));
      }),
    );
  });
});
