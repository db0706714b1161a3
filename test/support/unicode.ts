import fc from 'fast-check';

const surrogates = 0x800;

/**
 * A text of any code points but lone surrogates, as `unit: 'binary'` makes it. That one enters all 1.1 million code
 * points into a map, anew for each arbitrary, which takes most of a second.
 */
export const anyText = (): fc.Arbitrary<string> => fc.string({ unit: codePoint });

const codePoint = fc.nat({ max: 0x10ffff - surrogates }).map(
  (n) => String.fromCodePoint(n < 0xd800 ? n : n + surrogates),
  (text) => {
    const point = typeof text === 'string' ? text.codePointAt(0) : undefined;
    if (point === undefined || text !== String.fromCodePoint(point) || (point >= 0xd800 && point < 0xe000))
      throw new Error('not one code point');
    return point < 0xd800 ? point : point - surrogates;
  },
);
