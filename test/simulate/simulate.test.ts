import { describe, expect, it } from 'vitest';
import { flaws } from './flaws.ts';
import { explain, planOf, type Report, shrink, simulate } from './simulate.ts';

const seeds = 100;

const quick = flaws.filter((flaw) => flaw.quick);

/** What is the same each time: the texts have days and ids, which are not. The hash has the texts without these. */
const comparable = ({ lines: _, violation, ...report }: Report): object => ({
  ...report,
  violation: violation && { invariant: violation.invariant, at: violation.at },
});

describe('nodes that share a store, despite all faults', () => {
  it(`hold every invariant in ${seeds} simulations`, async () => {
    for (let seed = 1; seed <= seeds; seed += 1) {
      const report = await simulate(planOf(seed));
      if (report.violation !== undefined) expect.fail(explain(await shrink(report)));
    }
  });

  // The other flaws take up to thousands of seeds: `npm run test:simulate -- --mutations`.
  it.each(quick)('notice $name', async ({ flaws: put, noticed }) => {
    const broken: string[] = [];
    for (let seed = 1; seed <= 100 && !broken.some((invariant) => noticed.includes(invariant)); seed += 1)
      broken.push((await simulate(planOf(seed), put)).violation?.invariant ?? '');
    expect(broken.filter((invariant) => noticed.includes(invariant))).toHaveLength(1);
  });

  it('repeat the same events for the same seed', async () => {
    for (const seed of [7, 8, 9]) {
      const [first, second] = [await simulate(planOf(seed)), await simulate(planOf(seed))];
      expect(comparable(second)).toEqual(comparable(first));
    }
  });

  it.each(quick)('repeat the same violation for the same seed: $name', async ({ flaws: put }) => {
    let seed = 1;
    let first = await simulate(planOf(seed), put);
    for (; first.violation === undefined; seed += 1) first = await simulate(planOf(seed + 1), put);
    expect(comparable(await simulate(planOf(seed), put))).toEqual(comparable(first));
  });

  it('have other events with another seed', async () => {
    const plan = planOf(7);
    const [first, other] = [await simulate(plan), await simulate({ ...plan, seed: 8 })];
    expect(other.events).not.toBe(first.events);
  });
});
