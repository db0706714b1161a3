import { expect, it, vi } from 'vitest';
import type { Quotas } from '../../../src/core/ports/quotas.ts';
import { FailedAttempts } from '../../../src/http/auth/failed-attempts.ts';
import { OwnCounters } from '../../../src/quotas/own-counters.ts';

const [guesser, other] = ['203.0.113.7', '203.0.113.8'];

function fail(node: FailedAttempts, address: string, times: number): void {
  for (let count = 0; count < times; count += 1) node.add(address);
}

it('wrong credentials count on all nodes that share their counters', async () => {
  const counters = new OwnCounters();
  const shared: Quotas = {
    isShared: true,
    // As a database answers.
    take: async (...asked) => counters.take(...asked),
    close: async () => {},
  };
  const [one, two] = [new FailedAttempts(shared), new FailedAttempts(shared)];
  fail(one, guesser, 19);
  fail(two, other, 1);
  expect([one.waitOf(guesser), two.waitOf(guesser)]).toEqual([undefined, undefined]);
  two.add(guesser);
  await expect.poll(() => two.waitOf(guesser)).toBeGreaterThan(0);
  expect(two.waitOf(guesser)).toBeLessThanOrEqual(60);
  expect(two.waitOf(other)).toBeUndefined();
});

it('wrong credentials of an address that has no attempts left are counted no further', async () => {
  const counters = new OwnCounters();
  const take = vi.fn<Quotas['take']>((...asked) => counters.take(...asked));
  const node = new FailedAttempts({ isShared: true, take, close: async () => {} });
  fail(node, guesser, 50);
  expect(take).toHaveBeenCalledTimes(20);
  expect(node.waitOf(guesser)).toBeGreaterThan(0);
});

it('wrong credentials count for each process where nodes share nothing', async () => {
  const counters = new OwnCounters();
  const [one, two] = [new FailedAttempts(counters), new FailedAttempts(counters)];
  fail(one, guesser, 20);
  fail(two, guesser, 1);
  expect(one.waitOf(guesser)).toBeGreaterThan(0);
  expect(two.waitOf(guesser)).toBeUndefined();
  expect(counters.size).toBe(0);
});
