import { describe, expect, it } from 'vitest';
import { receiveReply } from '../../src/engine/execution/reply-schema.ts';
import { findProblems, formatOf, readValue } from '../../src/forms/reply-check.ts';
import { choicesOf, fieldKind } from '../../src/forms/reply-form.ts';

describe('a form', () => {
  it('offers the values of an enum, and those of constants by their titles', () => {
    expect(choicesOf({ enum: ['a', 2] })).toEqual([
      { value: 'a', label: 'a' },
      { value: 2, label: '2' },
    ]);
    const rooms = { oneOf: [{ const: 'r1', title: 'Red room' }, { const: 'r2' }] };
    expect(choicesOf(rooms)).toEqual([
      { value: 'r1', label: 'Red room' },
      { value: 'r2', label: 'r2' },
    ]);
    expect([rooms, { type: 'array', items: rooms }, { anyOf: [{ type: 'string' }] }].map(fieldKind)).toEqual([
      'choice',
      'choices',
      'json',
    ]);
    expect(findProblems(rooms, 'r3')).toEqual([{ path: '', text: 'must be one of: Red room, r2.' }]);
  });

  it('finds all problems at once, each at its field', () => {
    const schema = {
      type: 'object',
      properties: {
        guests: { type: 'integer', minimum: 1 },
        email: { type: 'string', format: 'email' },
        passenger: { type: 'object', properties: { name: { type: 'string', minLength: 1 } }, required: ['name'] },
        note: { type: 'string' },
      },
      required: ['guests', 'email', 'passenger'],
    };
    expect(findProblems(schema, { guests: 0, passenger: { name: '' } })).toEqual([
      { path: '/guests', text: 'must be 1 or more.' },
      { path: '/email', text: 'is required.' },
      { path: '/passenger/name', text: 'is required.' },
    ]);
  });

  it('completes times that are typed without seconds and zone', () => {
    const time = { type: 'string', format: 'time' };
    const moment = { type: 'string', format: 'date-time' };
    expect(findProblems(time, readValue('14:30', time))).toEqual([]);
    expect(findProblems(moment, readValue('2026-03-31 14:30', moment))).toEqual([]);
    expect(new Date(String(readValue('2026-03-31T14:30', moment)))).toEqual(new Date('2026-03-31T14:30'));
    expect(readValue('2026-03-31T14:30:00Z', moment)).toBe('2026-03-31T14:30:00Z');
    expect(readValue('soon', moment)).toBe('soon');
    const [isoTime, isoMoment] = ['iso-time', 'iso-date-time'].map((format) => ({ type: 'string', format }));
    expect(readValue('14:30', isoTime ?? {})).toBe(readValue('14:30', time));
    expect(readValue('2026-03-31T14:30', isoMoment ?? {})).toBe(readValue('2026-03-31T14:30', moment));
  });

  it.each([
    [{ type: 'boolean' }, 'yes or no'],
    [{ type: 'integer', minimum: 1, maximum: 60 }, 'whole number, 1 to 60'],
    [{ type: 'number', minimum: 0 }, 'number, 0 or more'],
    [{ enum: ['a', 'b'] }, 'a | b'],
    [{ type: 'array', items: { enum: ['a', 'b'] } }, 'any of a | b'],
    [{ type: 'string', format: 'date' }, 'a date such as 2026-03-31'],
    [{ type: 'string' }, undefined],
  ])('says how a value of %j is written', (schema, words) => {
    expect(formatOf(schema)).toBe(words);
  });
});

const cases: [object, unknown][] = [
  [{ type: 'integer', minimum: 1 }, 1],
  [{ type: 'integer', minimum: 1 }, 0],
  [{ type: 'integer' }, 1.5],
  [{ type: 'number', maximum: 2 }, 2.5],
  [{ type: 'number', exclusiveMinimum: 0 }, 0],
  [{ type: 'number', exclusiveMaximum: 1 }, 0.5],
  [{ type: 'integer', multipleOf: 5 }, 12],
  [{ type: 'number' }, 'x'],
  [{ type: 'boolean' }, 'maybe'],
  [{ type: 'boolean' }, false],
  [{ type: 'string', minLength: 2 }, '🌊'],
  [{ type: 'string', maxLength: 1 }, '🌊'],
  [{ type: 'string' }, 5],
  [{ enum: ['a', { b: 1 }] }, { b: 1 }],
  [{ enum: ['a'] }, 'b'],
  [{ oneOf: [{ const: 1 }, { const: 2 }] }, 3],
  [{ type: 'array', items: { enum: ['a', 'b'] }, uniqueItems: true }, ['a', 'a']],
  [{ type: 'array', items: { enum: ['a', 'b'] }, minItems: 1 }, []],
  [{ type: 'array', items: { type: 'string' }, maxItems: 1 }, ['a', 'b']],
  [{ type: 'array', items: { type: 'string', format: 'email' } }, ['a@b.example', 'b']],
  [{ type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }, {}],
  [{ type: 'object' }, []],
  [{ type: 'string', format: 'date' }, '2026-02-30'],
  [{ type: 'string', format: 'date' }, '2028-02-29'],
  [{ type: 'string', format: 'time' }, '14:30'],
  [{ type: 'string', format: 'time' }, '14:30:00+01:00'],
  [{ type: 'string', format: 'date-time' }, '2026-03-31T14:30:00Z'],
  [{ type: 'string', format: 'date-time' }, '2026-03-31'],
  [{ type: 'string', format: 'email' }, 'nomail'],
  [{ type: 'string', format: 'email' }, 'a@b.example'],
  [{ type: 'string', format: 'uri' }, 'example.com'],
  [{ type: 'string', format: 'uri' }, 'https://example.com/a?b#c'],
];

describe('a form finds a problem where the server would refuse the reply', () => {
  it.each(cases)('%j of %j', (schema, value) => {
    const request = { type: 'message' as const, message: { role: 'agent', parts: [] }, schema: { ...schema } };
    const part = { content_type: 'application/json', content: JSON.stringify(value) };
    const refused = (): boolean => {
      try {
        receiveReply(request, { message: { parts: [part] } }, 'cli', '2026-01-01T00:00:00Z');
        return false;
      } catch {
        return true;
      }
    };
    expect(findProblems(schema, value).length > 0).toBe(refused());
  });
});
