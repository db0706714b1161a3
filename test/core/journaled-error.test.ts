import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AgentError, errorOf, fail } from '../../src/core/errors.ts';
import { errorFromJournal, type JournaledError, journaledError } from '../../src/core/journaled-error.ts';

/** What the agent of a re-entered run gets. */
const again = (thrown: unknown) => errorFromJournal(JSON.parse(JSON.stringify(journaledError(thrown))));

const refuse = (): never => {
  throw new Error('not me');
};

/** The errors that a journaled error is made of. */
const sizeOf = ({ cause, errors = [] }: JournaledError): number =>
  [...(cause && 'error' in cause ? [cause.error] : []), ...errors].reduce((sum, one) => sum + sizeOf(one), 1);

const chained = (length: number): Error =>
  length === 0 ? new Error('root') : new Error(`link ${length}`, { cause: chained(length - 1) });

describe('a journaled error', () => {
  it('keeps name, message, stack and causes', () => {
    const cause = new TypeError('the cause', { cause: 'its own cause' });
    const thrown = new RangeError('not like this', { cause });
    const error = again(thrown);
    expect(error).toMatchObject({ name: 'RangeError', message: 'not like this', stack: thrown.stack });
    expect(error.cause).toMatchObject({ name: 'TypeError', message: 'the cause', stack: cause.stack });
    expect((error.cause as Error).cause).toBe('its own cause');
    expect(String(error)).toBe('RangeError: not like this');
    expect(Object.keys(error)).not.toContain('cause');
  });

  it('keeps the errors of an AggregateError, and leaves out what is no Error', () => {
    const { errors } = again(new AggregateError([new TypeError('a'), 'b', new AgentError('quota', 'c')], 'all')) as {
      errors?: AgentError[];
    };
    expect(errors?.map(String)).toEqual(['TypeError: a', 'AgentError: c']);
    expect(errors?.[1]?.code).toBe('quota');
  });

  it('is of one class, whatever was thrown, and the same when it is journaled again', () => {
    class Custom extends TypeError {}
    for (const thrown of [
      new Custom('x'),
      new AgentError('quota', 'x', { left: 0 }),
      fail('call_depth', 16),
      'x',
      5n,
    ]) {
      const first = errorFromJournal(journaledError(thrown));
      expect(first.constructor).toBe(AgentError);
      expect(journaledError(first)).toEqual(journaledError(again(thrown)));
      expect(first.stack).toBe(again(thrown).stack);
    }
  });

  it('shows clients the same as the original, if the agent throws it on', () => {
    class Quota extends AgentError {
      override readonly name = 'Quota';
    }
    const all = [
      new Quota('quota', 'x', { left: 0 }),
      new AgentError('not_found', 'x'),
      fail('call_depth', 16),
      'x',
      {},
    ];
    for (const thrown of [...all, new RangeError('x', { cause: new Error('secret') })])
      expect(errorOf(again(thrown))).toEqual(errorOf(thrown));
  });

  it('has the stack of an error of the engine, whose frames the agent does not see', () => {
    const thrown = fail('call_depth', 16);
    const { stack } = thrown;
    expect(thrown.withoutFrames().stack).toBe(`RivuletError: ${thrown.message}`);
    expect(again(thrown).stack).toBe(stack);
  });

  it('loads from journals of older versions', () => {
    const old = errorFromJournal({ code: 'server_error', message: 'used up', data: { code: 'quota', left: 0 } });
    expect(old).toMatchObject({
      name: 'AgentError',
      code: 'quota',
      data: { left: 0 },
      stack: 'AgentError: used up',
    });
    expect([old.cause, 'errors' in old]).toEqual([undefined, false]);
  });

  it('keeps a cause that is not an Error if it is small JSON', () => {
    expect(again(new Error('x', { cause: { status: 429 } })).cause).toEqual({ status: 429 });
    for (const cause of [5n, () => 0, 'x'.repeat(10_000), Array(2_000).fill(0)])
      expect(again(new Error('x', { cause })).cause).toBe(undefined);
  });

  it('is limited in number and length', () => {
    expect(sizeOf(journaledError(chained(100)))).toBe(16);
    const many = Array.from({ length: 100 }, (_, at) => new Error(`${at}`));
    expect(sizeOf(journaledError(new AggregateError(many, 'all')))).toBe(16);
    const long = (cause?: unknown) =>
      Object.assign(new AgentError('c', 'm'.repeat(100_000), 'd'.repeat(64_000)), {
        stack: 's'.repeat(100_000),
        cause,
      });
    expect(JSON.stringify(journaledError(long(long(long(long()))))).length).toBeLessThan(256 * 1024);
    expect(
      sizeOf(
        journaledError(
          new AggregateError(
            many.map(() => long()),
            'all',
          ),
        ),
      ),
    ).toBe(3);
  });

  it('ends where an error is a cause of itself', () => {
    const ring: Error = new Error('ring', { cause: new Error('inner') });
    Object.assign(ring.cause as Error, { cause: ring });
    const aggregate = new AggregateError([], 'all');
    aggregate.errors.push(aggregate, ring);
    expect(sizeOf(journaledError(aggregate))).toBe(3);
  });

  it.each(['name', 'message', 'stack', 'cause', 'errors', 'code', 'data'])(
    'is made where the getter of %s throws',
    (key) => {
      const error = again(Object.defineProperty(new AgentError('quota', 'x'), key, { get: refuse }));
      expect(error).toBeInstanceOf(AgentError);
      expect(error.stack).toEqual(expect.any(String));
    },
  );

  it('is made of any value, as plain JSON', () => {
    const anything = fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true, withSparseArray: true });
    const trap = fc.constantFrom('get', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor', 'has');
    const thrown = fc.oneof(
      anything.map((value) => () => value),
      fc.tuple(anything, anything, anything, anything, anything).map(
        ([name, message, stack, cause, code]) =>
          () =>
            Object.assign(new Error('m'), { name, message, stack, cause, code, errors: [cause, new Error('e')] }),
      ),
      fc.array(trap).map((traps) => () => {
        const hostile = new Proxy(new Error('m'), Object.fromEntries(traps.map((name) => [name, refuse])));
        return new AggregateError([hostile], 'all', { cause: hostile });
      }),
    );
    fc.assert(
      fc.property(thrown, (make) => {
        const json = journaledError(make());
        expect(JSON.parse(JSON.stringify(json))).toEqual(json);
        expect(errorFromJournal(json)).toBeInstanceOf(AgentError);
      }),
      { numRuns: 50 },
    );
  });
});
