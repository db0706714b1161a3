import { expect, it } from 'vitest';
import { checkAgainst } from '../../src/engine/agents/json-schema.ts';
import { inProcessorTime } from '../../src/engine/agents/processor-time.ts';
import { processorTime } from '../support/processor-time.ts';

const clock = new Int32Array(new SharedArrayBuffer(4));

/** Work that waits without the processor until it is stopped, the first `waits` times, as on a machine with other load. */
function workThatWaits<T>(waits: number, value: T) {
  let tries = 0;
  const work = (): T => {
    tries += 1;
    if (tries <= waits) Atomics.wait(clock, 0, 0, 60_000);
    return value;
  };
  return { work, tries: () => tries };
}

it('work that did not get the processor in time is run again', () => {
  const { work, tries } = workThatWaits(2, 'done');
  expect(inProcessorTime(40, work)).toEqual({ state: 'done', value: 'done' });
  expect(tries()).toBeGreaterThan(2);
});

it('work that never gets the processor is not said to take too long', () => {
  const { work, tries } = workThatWaits(Number.POSITIVE_INFINITY, 'done');
  expect(inProcessorTime(40, work)).toEqual({ state: 'starved' });
  expect(tries()).toBe(5);
});

it('work that has used its processor time is stopped, and not run again without need', () => {
  const started = processorTime();
  const work = (): never => {
    for (;;);
  };
  expect(inProcessorTime(100, work)).toEqual({ state: 'too-long' });
  // Each try but the last had less than 80 ms, and the last at most twice that unless the load ended just then.
  expect(processorTime() - started).toBeLessThan(2_000);
});

it('an error of the work is thrown, and the next work is not affected', () => {
  const work = (): never => {
    throw new Error('broken');
  };
  expect(() => inProcessorTime(1_000, work)).toThrow('broken');
  expect(inProcessorTime(1_000, () => 1)).toEqual({ state: 'done', value: 1 });
});

it('a value is checked against its schema again where its check did not get the processor in time', () => {
  const schema = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] };
  const valueWith = (amount: unknown) => {
    const { work } = workThatWaits(1, amount);
    return Object.defineProperty({}, 'amount', { get: work, enumerable: true });
  };
  const check = (value: unknown) => () => checkAgainst(schema, { path: 'arguments', value, chars: 20 });
  expect(check(valueWith(3))).not.toThrow();
  expect(check(valueWith('three'))).toThrow('arguments/amount: must be number.');
});
