import { describe, expect, it } from 'vitest';
import { UsageError } from '../../src/cli/exit-codes.ts';
import { expectedReply, replyOf } from '../../src/cli/expected-reply.ts';

const request = (schema?: object) => ({
  type: 'message' as const,
  message: { role: 'agent/a', parts: [] },
  ...(schema && { schema: { ...schema } }),
});
const form = {
  type: 'object',
  properties: {
    guests: { type: 'integer', minimum: 1, description: 'How many?' },
    passenger: { type: 'object', properties: { name: { type: 'string', title: 'Name' } } },
  },
  required: ['guests'],
};

describe('what a question expects', () => {
  it('is shown field by field, with the schema', () => {
    expect(expectedReply(request(form))).toEqual([
      '  guests: whole number, 1 or more, required, How many?',
      '  passenger: optional',
      '    name: optional, Name',
      `JSON Schema: ${JSON.stringify(form)}`,
    ]);
    expect(expectedReply(request({ type: 'boolean' }))).toEqual(['  yes or no', 'JSON Schema: {"type":"boolean"}']);
    expect(expectedReply(request())).toEqual([]);
  });

  it('cannot control the terminal', () => {
    const schema = { type: 'object', properties: { 'a\u001b[2J': { type: 'string', description: '\u009b2J\nx' } } };
    expect(expectedReply(request(schema)).join('')).not.toMatch(/\p{Cc}/u);
  });
});

describe('the text of a reply', () => {
  it.each([
    [undefined, 'yes', 'yes'],
    [{ type: 'boolean' }, 'yes', true],
    [{ type: 'integer' }, ' 12\n', 12],
    [{ enum: ['blue', 'red'] }, 'red', 'red'],
    [{ type: 'string' }, '12', '12'],
    [form, '{"guests":2}', { guests: 2 }],
  ])('is read as the schema %j wants it: %s', (schema, text, value) => {
    const reply = replyOf(request(schema), text);
    expect(typeof reply === 'string' ? reply : JSON.parse(Object(reply).content)).toEqual(value);
  });

  it('that does not fit is refused with what is expected', () => {
    const refused = (schema: object, text: string): string => {
      try {
        replyOf(request(schema), text);
      } catch (error) {
        if (error instanceof UsageError) return error.message;
      }
      return '';
    };
    expect(refused(form, 'yes')).toMatch(
      /^the question expects another reply: the reply must be a JSON object\.\n {2}guests: /,
    );
    expect(refused(form, '{"guests":0}')).toContain('guests must be 1 or more.');
    expect(refused({ type: 'boolean' }, 'maybe')).toContain('the reply must be yes or no.');
  });
});
