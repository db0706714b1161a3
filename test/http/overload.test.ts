import { expect, it } from 'vitest';
import { Overload } from '../../src/http/limits/overload.ts';

/** An overload whose measurements the test makes; `log` has what was logged. */
function measured(limits = { overloadDelay: 500, overloadHeap: 90 }) {
  const now = { delay: 0, heap: 0 };
  const log: string[] = [];
  const write = (_: unknown, text?: string): void => void log.push(String(text));
  const overload = new Overload(limits, { delay: () => now.delay, heap: () => now.heap }, { warn: write, info: write });
  const after = (delay: number, heap: number): string => {
    Object.assign(now, { delay, heap });
    overload.check();
    try {
      overload.refuse();
      return 'accepted';
    } catch (error) {
      return error instanceof Error ? error.message : '';
    }
  };
  return { after, log };
}

it('refuses runs after a measurement with a late event loop, until one without', () => {
  const { after, log } = measured();
  expect(after(500, 0)).toBe('accepted');
  expect(after(700, 0)).toBe('The server does not keep up: it is late by 700 ms; try again soon.');
  expect(after(800, 0)).toContain('late by 800 ms');
  expect(after(20, 0)).toBe('accepted');
  expect(log).toEqual([
    'The server does not keep up: it is late by 700 ms; new runs are refused',
    'new runs are accepted again',
  ]);
});

it('refuses runs when the heap is full at two measurements in a row, because garbage fills it for a moment', () => {
  const { after } = measured();
  expect(after(0, 95)).toBe('accepted');
  expect(after(0, 50)).toBe('accepted');
  expect(after(0, 95)).toBe('accepted');
  expect(after(0, 91)).toBe('The server’s memory is almost full (91 % of its heap); try again soon.');
  expect(after(0, 90)).toBe('accepted');
});

it('never refuses runs where its limits are zero', () => {
  const { after } = measured({ overloadDelay: 0, overloadHeap: 0 });
  expect([after(9_000, 100), after(9_000, 100)]).toEqual(['accepted', 'accepted']);
});
