import { describe, expect, it } from 'vitest';
import { flaws } from './flaws.ts';
import { explain, planOf, shrink, simulate } from './simulate.ts';

const seeds = 100;

describe('nodes that share a store, despite all faults', () => {
  it(`hold every invariant in ${seeds} simulations`, async () => {
    for (let seed = 1; seed <= seeds; seed += 1) {
      const report = await simulate(planOf(seed));
      if (report.violation !== undefined) expect.fail(explain(await shrink(report)));
    }
  });

  // The other flaws take up to thousands of seeds: `npm run test:simulate -- --mutations`.
  it.each(flaws.filter(({ quick }) => quick))('notice $name', async ({ flaws: put, noticed }) => {
    const broken: string[] = [];
    for (let seed = 1; seed <= 100 && !broken.some((invariant) => noticed.includes(invariant)); seed += 1)
      broken.push((await simulate(planOf(seed), put)).violation?.invariant ?? '');
    expect(broken.filter((invariant) => noticed.includes(invariant))).toHaveLength(1);
  });

  it('repeat the same events for the same seed', async () => {
    for (const seed of [7, 8, 9]) {
      const [first, second] = [await simulate(planOf(seed)), await simulate(planOf(seed))];
      expect({ ...second, lines: [] }).toEqual({ ...first, lines: [] });
    }
  });
});
