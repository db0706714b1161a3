import { describe, expect, it } from 'vitest';
import { checkAwait, checkCall, checkOutput } from '../../src/core/check-output.ts';

const now = '2026-01-01T00:00:00.000Z';
const text = (content: unknown): object => ({ parts: [{ content }] });
const awaited = (request: unknown, options: object = {}, awaitTimeout = 0) =>
  checkAwait('a', request, options, { now, awaitTimeout });

describe('what an agent awaits', () => {
  it('is a text, a message or a whole request, asked by the agent', () => {
    const message = {
      role: 'agent/a',
      parts: [{ content_type: 'text/plain', content: 'Well?' }],
      created_at: now,
      completed_at: now,
    };
    expect(awaited('Well?')).toEqual({ type: 'message', message });
    expect(awaited(text('Well?'))).toEqual({ type: 'message', message });
    expect(awaited({ message: text('Well?'), mine: 1 })).toEqual({ type: 'message', message, mine: 1 });
    expect(awaited('Well?', { schema: { type: 'string' } })).toMatchObject({ schema: { type: 'string' } });
  });

  it('expires at the time of its options or request, or else of the server', () => {
    const ends = (request: unknown, options?: object, awaitTimeout?: number) =>
      awaited(request, options, awaitTimeout).expires_at;
    expect(ends('?')).toBeUndefined();
    expect(ends('?', {}, 60_000)).toBe('2026-01-01T00:01:00.000Z');
    expect(ends('?', { expiresIn: 3_600_000 }, 1)).toBe('2026-01-01T01:00:00.000Z');
    expect(ends({ message: text('?'), expires_at: '2030-01-01T02:00:00+02:00' }, {}, 1)).toBe(
      '2030-01-01T00:00:00.000Z',
    );
  });

  const ring: { self?: object } = {};
  ring.self = ring;
  it.each<[string, unknown, object, string | RegExp]>([
    ['a number', 5, {}, 'await: expected a text, a message or an await request.'],
    ['nothing', null, {}, 'await: expected a text'],
    ['an object of nothing known', { a: 1 }, {}, 'await.message.parts: is required.'],
    ['content that is a number', text(5), {}, 'await.message.parts[0].content: expected string, got 5.'],
    ['content that is a BigInt', text(5n), {}, 'await.parts[0].content: is a bigint, which JSON cannot express.'],
    ['content that is a function', { message: text(() => 1) }, {}, 'await.message.parts[0].content: is a function'],
    ['a ring', { ...text('a'), ring }, {}, /await\.ring\.self.*contains itself/],
    [
      'a leap second',
      { ...text('a'), created_at: '2016-12-31T23:59:60Z' },
      {},
      'await.message.created_at: expected an',
    ],
    [
      'an end that is none',
      { message: text('a'), expires_at: 'soon' },
      {},
      'await.expires_at: expected an ISO 8601 date and time of the years 1 to 9999, such as 2026-01-31T12:00:00Z, got "soon".',
    ],
    ['a negative wait', 'a', { expiresIn: -1 }, 'await.expiresIn: expected more than 0 and at most '],
    ['a wait of NaN', 'a', { expiresIn: Number.NaN }, 'got NaN.'],
    ['a wait without an end', 'a', { expiresIn: Number.POSITIVE_INFINITY }, 'got Infinity.'],
    ['a schema that is no object', 'a', { schema: 'x' }, 'await.schema: expected object'],
    ['a schema that JSON cannot express', 'a', { schema: { a: Symbol('s') } }, 'await.schema.a: is a symbol'],
  ])('is refused by name where it is nonsense: %s', (_, request, options, problem) => {
    expect(() => awaited(request, options)).toThrow(problem);
    expect(() => awaited(request, options)).toThrow(/^Agent a made an invalid await request: /);
  });
});

describe('the input of a call', () => {
  it('is a text, a message or several', () => {
    const contents = (input: unknown) => checkCall('a', input, now).map(({ role, parts }) => [role, parts[0]?.content]);
    expect(contents('Hi')).toEqual([['user', 'Hi']]);
    expect(contents(text('Hi'))).toEqual([['user', 'Hi']]);
    expect(contents([text('Hi'), { role: 'agent/b', ...text('you') }])).toEqual([
      ['user', 'Hi'],
      ['agent/b', 'you'],
    ]);
  });

  it.each<[string, unknown, string]>([
    ['a number', 5, 'input[0]: expected object'],
    ['content that is a number', [text('a'), text(5)], 'input[1].parts[0].content: expected string'],
    ['a BigInt', [text('a'), text(5n)], 'input[1].parts[0].content: is a bigint'],
  ])('is refused by name where it is nonsense: %s', (_, input, problem) => {
    expect(() => checkCall('a', input, now)).toThrow(problem);
  });
});

describe('what an agent emits', () => {
  it('is an event of its own with nothing beside it that makes another event of it', () => {
    const emitted = { type: 'generic', generic: { step: 1 }, run: 'mine', part: 'mine' };
    expect(checkOutput('a', emitted, now)).toEqual({ type: 'generic', generic: { step: 1 } });
  });
});
