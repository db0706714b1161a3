import { describe, expect, it } from 'vitest';
import { asksYesOrNo, fieldKind, initialValue, parseValue, problemsOf, replyPart } from '../../src/forms/reply-form.ts';

describe('a reply form', () => {
  it('has a field of the right kind for each schema, and initial values', () => {
    expect(
      [
        { enum: ['a'] },
        { type: 'integer' },
        { type: 'array', items: { type: 'string' } },
        { type: 'array', items: { type: 'number' } },
        { type: 'array', items: { enum: ['a', 'b'] } },
        { type: 'object' },
        { oneOf: [] },
      ].map(fieldKind),
    ).toEqual(['choice', 'number', 'list', 'json', 'choices', 'json', 'json']);
    const inner = { type: 'object', properties: { d: { default: 1 } } };
    const schema = {
      type: 'object',
      required: ['needed'],
      properties: { a: { type: 'boolean' }, b: { type: 'string', default: 'x' }, needed: inner, left: inner },
    };
    // An optional object is absent until a person adds it, and so is the answer to yes or no.
    expect(initialValue(schema)).toEqual({ a: undefined, b: 'x', needed: { d: 1 }, left: undefined });
  });

  it.each([
    ['Shall I? Answer yes or no.', true],
    ['The report is ready.\nShould I send it to Ada?', true],
    ['Delete all 3 files (y/n)', true],
    ['Should I use apples or pears?', false],
    ['Which river is it?', false],
    ['Do it as you like.', false],
  ])('offers yes and no for %s: %s', (question, offered) => {
    expect(asksYesOrNo(question)).toBe(offered);
  });

  it('sends a text without a schema, and JSON with one', () => {
    expect(replyPart(undefined, 'yes')).toEqual({ content_type: 'text/plain', content: 'yes' });
    expect(replyPart({ type: 'object' }, { a: 1, b: undefined })).toMatchObject({ content: '{"a":1}' });
  });

  it('lists the first problem of each field that the server names, or else the message', () => {
    const problems = [
      { path: '/a', text: 'is required' },
      { path: '/b', text: 'must be >= 1' },
      { path: '/b', text: 'must match a schema in anyOf' },
    ];
    expect(problemsOf({ message: 'no', data: { problems } })).toEqual(problems.slice(0, 2));
    expect(problemsOf({ message: 'The run awaits nothing.' })).toEqual([{ path: '', text: 'The run awaits nothing.' }]);
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
