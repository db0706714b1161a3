import { readFileSync } from 'node:fs';
import { Value } from '@sinclair/typebox/value';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AgentError, agentErrorOf, errorOf, errorTable, fail } from '../../src/core/errors.ts';
import { ErrorBody, ErrorCode } from '../../src/schema/error.ts';

describe('the table of errors', () => {
  const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');

  it.each(Object.entries(errorTable))('documents %s with its status', (name, { status, code }) => {
    const row = page.split('\n').find((line) => line.includes(`\`${name}\``));
    expect(row).toBeDefined();
    const [, documented] = /\| (\d{3}) +\|/.exec(row ?? '') ?? [];
    if (documented === undefined) expect(code).toBe('server_error');
    else expect(documented).toBe(String(status));
  });

  it.each(Object.entries(errorTable))(
    'has for %s the code that the page names for its status',
    (_, { status, code }) => {
      expect(page.replaceAll('\n', ' ')).toContain(
        '`code` is `not_found` for 404 and 410, `invalid_input` for any other 4xx, and `server_error` for 5xx.',
      );
      const other = status < 500 ? 'invalid_input' : 'server_error';
      expect(code).toBe([404, 410].includes(status) ? 'not_found' : other);
    },
  );

  it('documents no unknown error', () => {
    const named = [...page.matchAll(/^\| (`[^|]+`) +\|/gm)].flatMap(([, names = '']) => names.match(/\w+/g) ?? []);
    expect(named.filter((name) => !(name in errorTable))).toEqual([]);
  });

  it('makes errors with the fields of their row, and its name as the reason', () => {
    const error = fail('run_unknown', 'r1');
    expect(error).toMatchObject({
      kind: 'run_unknown',
      status: 404,
      code: 'not_found',
      message: 'There is no run r1.',
    });
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: 'not_found',
      message: 'There is no run r1.',
      data: { reason: 'run_unknown' },
    });
  });

  it('has only the codes of the protocol', () => {
    const codes = ErrorCode.anyOf.map((literal) => literal.const);
    expect([...new Set(Object.values(errorTable).map(({ code }) => code))].sort()).toEqual(codes.sort());
  });
});

const ring: { self?: unknown } = Object.create(null);
ring.self = ring;
const shared = (levels: number): unknown => {
  let value: unknown = 'x';
  for (let level = 0; level < levels; level += 1) value = { a: value, b: value };
  return value;
};
const deep = (levels: number): unknown => {
  let value: unknown = 'x';
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
};
const throwing = (key: string): Error =>
  Object.defineProperty(new AgentError('quota', 'used up', { left: 0 }), key, {
    get() {
      throw new Error('no look');
    },
  });
const { proxy: revoked, revoke } = Proxy.revocable({}, {});
revoke();
const hostile = new Proxy(new Error('m'), {
  get() {
    throw new Error('trap');
  },
  getPrototypeOf() {
    throw new Error('trap');
  },
  ownKeys() {
    throw new Error('trap');
  },
});

describe('the error of a run whose agent throws', () => {
  const noError = { code: 'server_error', message: 'The agent threw a value that is not an Error.' };
  const quota = (data?: unknown) => new AgentError('quota', 'used up', data);
  const said = (data: object) => ({ code: 'server_error', message: 'used up', data: { ...data, code: 'quota' } });

  // Not passed to `each`, which would write each value into a title.
  const cases: [string, unknown, object][] = [
    ['an AgentError, its code beside its data', quota({ left: 0 }), said({ left: 0 })],
    ['an AgentError without data', quota(), said({})],
    [
      'a code that the protocol has',
      new AgentError('not_found', 'm', { a: 1 }),
      { code: 'not_found', message: 'm', data: { a: 1 } },
    ],
    [
      'an AgentError of another copy',
      Object.assign(new Error('m'), { name: 'AgentError', code: 'c' }),
      { code: 'server_error', message: 'm', data: { code: 'c' } },
    ],
    [
      'an error of Node, whose code means nothing to clients',
      Object.assign(new Error('m'), { code: 'ENOENT' }),
      { code: 'server_error', message: 'm' },
    ],
    ['an error of the server’s own', fail('call_depth', 16), { ...fail('call_depth', 16).toJSON() }],
    ['an error without a message', new TypeError(), { code: 'server_error', message: 'TypeError' }],
    ['a string', 'text', { code: 'server_error', message: 'text' }],
    ['nothing', undefined, noError],
    ['a symbol', Symbol('s'), noError],
    ['a BigInt', 5n, noError],
    ['an object without a prototype', Object.create(null), noError],
    ['an array as data', quota([1, 2]), said({ value: [1, 2] })],
    ['a text as data', quota('five'), said({ value: 'five' })],
    ['null as data', quota(null), said({})],
    ['a Date in data', quota({ at: new Date(0) }), said({ at: '1970-01-01T00:00:00.000Z' })],
    [
      'a ring without a prototype as data',
      quota(ring),
      said({ invalid: expect.stringMatching(/^data\.self.* contains itself$/) }),
    ],
    [
      'a BigInt in data',
      quota({ a: [{ b: 5n }] }),
      said({ invalid: 'data.a[0].b is a bigint, which JSON cannot express' }),
    ],
    ['a function in data', quota({ f() {} }), said({ invalid: 'data.f is a function, which JSON cannot express' })],
    [
      'data whose toJSON throws',
      quota({
        a: {
          toJSON() {
            throw new Error('not me');
          },
        },
      }),
      said({ invalid: 'data.a cannot be read: not me' }),
    ],
    [
      'data that grows with each level',
      quota(shared(64)),
      said({ invalid: expect.stringContaining('has more than 10000 values') }),
    ],
    [
      'data that is too deep',
      quota(deep(5_000)),
      said({ invalid: expect.stringContaining('nested deeper than 100 levels') }),
    ],
    ['too much data', quota({ a: 'x'.repeat(70_000) }), said({ invalid: 'data.a has more than 65536 characters' })],
    ['data whose getter throws', throwing('data'), said({})],
    [
      'a message whose getter throws',
      throwing('message'),
      { code: 'server_error', message: 'AgentError', data: { left: 0, code: 'quota' } },
    ],
    ['a code whose getter throws', throwing('code'), { code: 'server_error', message: 'used up' }],
    [
      'a message that is no string',
      Object.assign(new Error('m'), { message: 5 }),
      { code: 'server_error', message: 'Error' },
    ],
    ['a Proxy that refuses every look', hostile, noError],
    ['a Proxy that was revoked', revoked, noError],
  ];
  it.each(cases.map(([name], at) => [name, at] as const))('is made from %s', (_, at) => {
    const [, thrown, body] = cases[at] ?? [];
    expect(errorOf(thrown)).toEqual(body);
  });

  it('has a message of at most 8,192 characters, and never half a surrogate pair', () => {
    expect(errorOf(new Error('x'.repeat(8_192))).message).toHaveLength(8_192);
    const { message } = errorOf(new Error(`${'x'.repeat(8_190)}${'🌊'.repeat(10)}`));
    expect(message).toBe(`${'x'.repeat(8_190)}…`);
  });

  it('is a protocol Error in plain JSON, for any value', () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
      withObjectString: true,
      withSparseArray: true,
      withTypedArray: true,
    });
    const trap = fc.constantFrom('get', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor', 'has');
    // Thunks, because fast-check inspects the values that it generates.
    const thrown = fc.oneof(
      anything.map((value) => () => value),
      fc.tuple(fc.string(), anything, anything).map(
        ([name, message, data]) =>
          () =>
            Object.assign(new Error('m'), { name, message, data, code: 'c' }),
      ),
      fc.tuple(anything, anything).map(
        ([code, data]) =>
          () =>
            Object.assign(quota(data), { code, cause: data }),
      ),
      fc.tuple(fc.array(trap), anything).map(([traps, data]) => () => {
        const refuse = (): never => {
          throw data;
        };
        return new Proxy(quota(data), Object.fromEntries(traps.map((name) => [name, refuse])));
      }),
      anything.map((data) => () => quota({ a: { toJSON: () => data }, [Symbol.toPrimitive]: data })),
    );
    fc.assert(
      fc.property(thrown, (make) => {
        const body = errorOf(make());
        expect(JSON.parse(JSON.stringify(body))).toEqual(body);
        expect(Value.Check(ErrorBody, body)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it('becomes the agent’s error again in the replay of a durable run', () => {
    for (const error of [quota({ left: 0 }), quota(), new AgentError('not_found', 'm', { a: 1 })]) {
      const again = agentErrorOf(errorOf(error));
      expect([again.code, again.message, again.data]).toEqual([error.code, error.message, error.data]);
      expect(errorOf(again)).toEqual(errorOf(error));
    }
  });
});
