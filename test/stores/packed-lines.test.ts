import fc from 'fast-check';
import { expect, it } from 'vitest';
import { encode, tokenHead, tokenTail } from '../../src/core/encode.ts';
import { packLines, unpackLines } from '../../src/stores/packed-lines.ts';
import { anyText } from '../support/unicode.ts';

const part = (more: object): string => encode({ type: 'message.part', part: { content_type: 'text/plain', ...more } });

it('returns every line as it was packed', () => {
  const line = fc.oneof(
    anyText().map((content) => part({ content })),
    fc.record({ content: fc.string(), content_encoding: fc.constant('plain') }).map(part),
    fc.constant(part({ content: 'long '.repeat(1_000) })),
    // As another program may write it: `encode` would escape the separators.
    fc
      .constantFrom('"}}\u2028x', '\u2029', '"}}\u2029')
      .map((content) => JSON.stringify({ type: 'message.part', part: { content_type: 'text/plain', content } })),
    // Damaged: the head and the tail share a quote.
    fc.constant(tokenHead.slice(0, -1) + tokenTail),
    fc.json().map((json) => JSON.stringify({ type: 'generic', generic: JSON.parse(json) })),
  );
  fc.assert(
    fc.property(fc.array(line, { minLength: 1 }), (lines) => {
      const text = packLines(lines);
      expect(unpackLines(text)).toEqual(lines);
      // Few lines have a way of their own.
      if (lines.every(({ length }) => length < 1_000))
        expect(lines.map((one) => packLines([one])).join('\n')).toBe(text);
    }),
  );
});

it('stores little more than the content of a token', () => {
  const tokens = Array.from({ length: 10 }, (_, n) => `token ${n} `);
  const text = packLines(tokens.map((content) => part({ content })));
  expect(text.length).toBeLessThan(tokens.join('').length + 2 * tokens.length);
});
