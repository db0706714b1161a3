import { describe, expect, it } from 'vitest';
import { fieldKind, initialValue, parseValue, problemOf } from '../../src/client/reply-form.ts';

describe('a reply form', () => {
  it('has a field of the right kind for each schema, and initial values', () => {
    expect(
      [
        { enum: ['a'] },
        { type: 'integer' },
        { type: 'array', items: { type: 'string' } },
        { type: 'array', items: { type: 'number' } },
        { type: 'object' },
        { oneOf: [] },
      ].map(fieldKind),
    ).toEqual(['choice', 'number', 'list', 'json', 'json', 'json']);
    const schema = {
      type: 'object',
      properties: { a: { type: 'boolean' }, b: { type: 'string', default: 'x' }, c: {} },
    };
    expect(initialValue(schema)).toEqual({ a: false, b: 'x', c: undefined });
  });

  it.each([
    ['await_resume.message.parts[0].content/a/b: must be number.', '/a/b', 'must be number.'],
    ["await_resume.message.parts[0].content: must have required property 'a'.", '/a', 'is required.'],
    ['await_resume.message.parts: must be number.', '', 'must be number.'],
    ['The run awaits nothing.', '', 'The run awaits nothing.'],
  ])('finds the field that an error names: %s', (message, path, text) => {
    expect(problemOf(message)).toEqual({ path, text });
  });

  it.each([
    ['12', { type: 'string' }, '12'],
    ['12', { type: 'integer' }, 12],
    ['Yes', { type: 'boolean' }, true],
    ['n', { type: 'boolean' }, false],
    ['1', { enum: ['1', 2] }, '1'],
    ['2', { enum: ['1', 2] }, 2],
    ['[1]', {}, [1]],
    ['{not JSON', { type: 'object' }, '{not JSON'],
  ])('parses %s for %j', (text, schema, value) => {
    expect(parseValue(text, schema)).toEqual(value);
  });
});
