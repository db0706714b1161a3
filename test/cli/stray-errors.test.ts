import { expect, it } from 'vitest';
import { StrayErrors } from '../../src/cli/serving/stray-errors.ts';

// stray-errors.servers.ts has a server with such an agent.
it('more than ten errors within a minute are too many, and any number over a long time is not', () => {
  const strays = new StrayErrors();
  const seconds = (count: number, first: number, step: number): boolean[] =>
    Array.from({ length: count }, (_, index) => strays.add((first + index * step) * 1_000));
  expect(seconds(30, 0, 7)).not.toContain(true);
  expect(seconds(10, 1_000, 1)).not.toContain(true);
  expect(seconds(1, 1_010, 1)).toEqual([true]);
  expect(strays.count).toBe(41);
});
