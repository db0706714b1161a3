import { describe, expect, it } from 'vitest';
import { textOf } from '../../src/index.ts';
import { resultOf } from '../../src/remote/mcp-outcome.ts';

describe('the result of a tool', () => {
  it('has each block of text on lines of its own, as its output has', () => {
    const image = { type: 'image' as const, data: 'AA==', mimeType: 'image/png' };
    const texts = ['one', 'two', 'three'].map((text) => ({ type: 'text' as const, text }));
    const { parts, output } = resultOf({ content: [...texts, image, { type: 'text', text: 'four' }] });
    expect(parts.map(({ content }) => content)).toEqual(['one', '\ntwo', '\nthree', 'AA==', 'four']);
    expect(output).toEqual({ text: 'one\ntwo\nthree\nfour' });
    expect(textOf({ parts: parts.slice(0, 3) })).toBe('one\ntwo\nthree');
  });
});
