import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { QuotaRule } from '../../src/core/ports/quotas.ts';
import { OwnCounters } from '../../src/quotas/own-counters.ts';

const rule: QuotaRule = { name: 'requests', points: 3, window: 60 };
const other: QuotaRule = { ...rule, name: 'runs' };

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'] }));
afterEach(() => void vi.useRealTimers());

it('counters of a process count by rule and owner, and refuse what is beyond the points', () => {
  const counters = new OwnCounters();
  const taken = [1, 1, 1, 1].map((points) => counters.take(rule, 'alice', points));
  expect(taken.map(({ allowed, remaining, reset }) => [allowed, remaining, reset])).toEqual([
    [true, 2, 60],
    [true, 1, 60],
    [true, 0, 60],
    [false, 0, 60],
  ]);
  expect(counters.take(rule, 'bob', 1).remaining).toBe(2);
  expect(counters.take(other, 'alice', 1).remaining).toBe(2);
  expect(counters.take(other, 'alice', 0)).toEqual({ rule: other, allowed: true, remaining: 2, reset: 60 });
});

it('counters of a process begin again when their window has ended, and not before', () => {
  const counters = new OwnCounters();
  counters.take(rule, 'alice', 5);
  vi.advanceTimersByTime(30_000);
  counters.take(rule, 'bob', 1);
  vi.advanceTimersByTime(29_500);
  expect(counters.take(rule, 'alice', 1)).toMatchObject({ allowed: false, reset: 1 });
  vi.advanceTimersByTime(500);
  expect(counters.take(rule, 'alice', 1)).toMatchObject({ allowed: true, remaining: 2, reset: 60 });
  expect(counters.take(rule, 'bob', 1)).toMatchObject({ remaining: 1, reset: 30 });
});

it('counters of a process do not follow the clock of the machine', () => {
  const counters = new OwnCounters();
  counters.take(rule, 'alice', 5);
  vi.advanceTimersByTime(60_000);
  vi.setSystemTime(Date.now() - 3_600_000);
  expect(counters.take(rule, 'alice', 1)).toMatchObject({ allowed: true, reset: 60 });
});

it('counters of a process keep only those whose window lasts, and remove few at once', () => {
  const counters = new OwnCounters();
  for (let n = 0; n < 1_000; n += 1) {
    counters.take(rule, `owner ${n}`, 1);
    vi.advanceTimersByTime(1_000);
  }
  expect(counters.size).toBe(60);
  for (let n = 0; n < 1_000; n += 1) counters.take(rule, `other ${n}`, 1);
  vi.advanceTimersByTime(60_000);
  const before = counters.size;
  counters.take(rule, 'next', 1);
  expect(counters.size).toBe(before - 1);
});
