import { describe, expect, it } from 'vitest';
import { checkPlan } from '../support/replay-check.ts';

describe('a durable run of any plan', () => {
  it('ends the same, after whichever commit it is cut off', async () => {
    const from = 1;
    const plans = 200;
    let next = from;
    const faults: string[] = [];
    const work = async (): Promise<void> => {
      while (next < from + plans && faults.length === 0) {
        const seed = next;
        next += 1;
        faults.push(...(await checkPlan(seed)).faults);
      }
    };
    await Promise.all(Array.from({ length: 16 }, work));
    expect(faults).toEqual([]);
  });
});
