import { expect } from 'vitest';
import type { Store } from '../../src/core/ports/store.ts';
import { processorTime } from '../support/processor-time.ts';

/** How often little and much data are measured, in turns, before the cost counts as one that grows. */
const mostTurns = 6;

/**
 * The shortest of some rounds, in milliseconds. The longer ones include the time of other programs. For a store within
 * the process, only the time on the processor counts. The time of `prepare`, before each round, does not.
 */
export async function shortest(
  store: Store,
  rounds: number,
  work: (round: number) => Promise<unknown>,
  prepare?: () => Promise<unknown>,
): Promise<number> {
  const now = store.watch === undefined ? processorTime : () => performance.now();
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) {
    await prepare?.();
    const start = now();
    await work(round);
    best = Math.min(best, now() - start);
  }
  return best;
}

/**
 * Expects that work takes about as long with much data as with little. `measured` makes that much data and returns the
 * time, `most` is the time allowed for much data. A cost that grows with the data is at least 40 times as high in each
 * turn. Other load of the machine delays some turns, and not all of them.
 */
export async function expectSteady(
  measured: (size: number) => Promise<number>,
  [few, many]: readonly [number, number],
  most = (small: number): number => 8 * small + 2,
): Promise<void> {
  let [small, large] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let turn = 0; turn < mostTurns && !(large < most(small)); turn += 1) {
    small = Math.min(small, await measured(few));
    large = Math.min(large, await measured(many));
  }
  expect(large).toBeLessThan(most(small));
}
