import { describe, expect, it } from 'vitest';
import { UsageError } from '../../src/cli/exit-codes.ts';
import { expectedReply, type FieldValues, promptReply, replyOf } from '../../src/cli/terminal/reply.ts';
import type { MessagePart } from '../../src/schema/message.ts';

/** Asks a question with typed lines; Ctrl-D follows them. Resolves to the reply, and to what was shown. */
async function ask(
  schema: object | undefined,
  lines: readonly string[],
  question = 'Well?',
  values: FieldValues = new Map(),
) {
  const shown: string[] = [];
  const left = [...lines];
  const readLine = async (prompt: string): Promise<string | undefined> => {
    shown.push(prompt);
    return left.shift();
  };
  const note = (text: string): void => void shown.push(text);
  const message = { role: 'agent/a', parts: [{ content: question }] };
  const request = { type: 'message' as const, message, ...(schema && { schema: { ...schema } }) };
  const reply = await promptReply(request, { readLine, note }, values);
  const part = reply as MessagePart | string | undefined;
  const value = typeof part === 'object' ? JSON.parse(part.content ?? '') : part;
  return { value, shown, left };
}

const object = (properties: object, required: string[] = Object.keys(properties)): object => ({
  type: 'object',
  properties,
  required,
});

describe('a prompt for a reply', () => {
  it('checks each field when it is entered, and shows its problem at once', async () => {
    const { value, shown } = await ask(
      object({ days: { type: 'integer', minimum: 1, maximum: 60 }, email: { type: 'string', format: 'email' } }),
      ['0', 'many', '3', 'nomail', 'a@b.example'],
    );
    expect(value).toEqual({ days: 3, email: 'a@b.example' });
    expect(shown).toEqual([
      'days (whole number, 1 to 60) > ',
      'days must be 1 or more.',
      'days (whole number, 1 to 60) > ',
      'days must be a whole number.',
      'days (whole number, 1 to 60) > ',
      'email (an email address) > ',
      'email must be an email address.',
      'email (an email address) > ',
    ]);
  });

  it('shows the name of a field as the schema has it', async () => {
    const { value, shown } = await ask(object({ 'km/h ~': { type: 'integer' } }), ['fast', '30']);
    expect(value).toEqual({ 'km/h ~': 30 });
    expect(shown.slice(0, 2)).toEqual(['km/h ~ (whole number) > ', 'km/h ~ must be a whole number.']);
  });

  it('takes a choice by its number or its name', async () => {
    const room = { enum: ['blue', 'red'], title: 'Room' };
    expect(await ask(object({ room }), ['2'])).toMatchObject({
      value: { room: 'red' },
      shown: ['  1  blue', '  2  red', 'Room > '],
    });
    expect((await ask(room, ['BLUE'])).value).toBe('blue');
    expect((await ask(room, ['3', '1'])).shown).toContain('Room must be one of: blue, red.');
    const numbers = { enum: [10, 1] };
    expect([(await ask(numbers, ['1'])).value, (await ask(numbers, ['2'])).value]).toEqual([1, 1]);
    const titled = { oneOf: [{ const: 'r1', title: 'Red room' }] };
    expect((await ask(titled, ['red room'])).value).toBe('r1');
  });

  it('takes several choices, separated by commas', async () => {
    const days = { type: 'array', items: { enum: ['Mon', 'Tue', 'Wed'] }, minItems: 1 };
    const { value, shown } = await ask(object({ days }), ['', '1, wed, 9', '1, wed']);
    expect(value).toEqual({ days: ['Mon', 'Wed'] });
    expect(shown.filter((line) => line.startsWith('days must') || line.startsWith('days item'))).toEqual([
      'days must have 1 or more.',
      'days item 3 must be one of: Mon, Tue, Wed.',
    ]);
  });

  it('reads a list of texts line by line', async () => {
    const { value } = await ask(object({ tags: { type: 'array', items: { type: 'string' } } }), ['a, b', 'c', '']);
    expect(value).toEqual({ tags: ['a, b', 'c'] });
  });

  it('takes yes and no for a boolean', async () => {
    expect((await ask({ type: 'boolean' }, ['perhaps', 'Yes'])).value).toBe(true);
    expect((await ask({ type: 'boolean' }, ['n'])).value).toBe(false);
  });

  it('takes yes and no for a question without a schema that asks for it', async () => {
    const question = 'Shall I? Answer yes or no.';
    const { value, shown } = await ask(undefined, ['', 'y'], question);
    expect([value, shown[0], shown[2]]).toEqual(['yes', '(yes | no) > ', '(yes | no) > ']);
    expect((await ask(undefined, ['no, never'], question)).value).toBe('no, never');
    expect((await ask(undefined, ['', 'blue'], 'Which colour?')).value).toBe('blue');
  });

  it('offers defaults that fit, and no others', async () => {
    const schema = object({
      days: { type: 'integer', default: 14 },
      guests: { type: 'integer', minimum: 1, default: 0 },
    });
    const { value, shown } = await ask(schema, ['', '', '2']);
    expect(value).toEqual({ days: 14, guests: 2 });
    expect(shown).toEqual([
      'days (whole number) [14] > ',
      'guests (whole number, 1 or more) > ',
      'guests is required.',
      'guests (whole number, 1 or more) > ',
    ]);
  });

  it('leaves out optional fields and optional objects', async () => {
    const passenger = object({ name: { type: 'string' } });
    const schema = object({ passenger, note: { type: 'string' }, ok: { type: 'boolean' } }, []);
    expect((await ask(schema, ['', '', ''])).value).toEqual({});
    const filled = await ask(schema, ['yes', 'Ada', '', '']);
    expect(filled.value).toEqual({ passenger: { name: 'Ada' } });
    expect(filled.shown.slice(0, 2)).toEqual(['passenger: fill it in? (yes | no) [no] > ', 'passenger.name > ']);
  });

  it('offers what was typed before, after the server has refused another field', async () => {
    const schema = object({ a: { type: 'string' }, b: { type: 'string' } });
    const values: FieldValues = new Map();
    await ask(schema, ['one', 'two'], 'Well?', values);
    values.delete('/b');
    const { value, shown } = await ask(schema, ['', 'three'], 'Well?', values);
    expect([value, shown]).toEqual([{ a: 'one', b: 'three' }, ['a [one] > ', 'b > ']]);
  });

  it('ends where the terminal ends', async () => {
    expect((await ask(object({ a: { type: 'string' }, b: { type: 'string' } }), ['one'])).value).toBeUndefined();
    expect((await ask(undefined, [])).value).toBeUndefined();
  });
});

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
