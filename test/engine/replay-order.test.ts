import { describe, expect, it } from 'vitest';
import { checkPlan } from '../support/replay-check.ts';

describe('a durable run of any plan', () => {
  it('ends alike: answered at once, after it left memory, or cut off after a commit', async () => {
    const plans = 200;
    let seed = 0;
    const faults: string[] = [];
    const work = async (): Promise<void> => {
      while (seed < plans && faults.length === 0) {
        seed += 1;
        faults.push(...(await checkPlan(seed, 1)).faults);
      }
    };
    await Promise.all(Array.from({ length: 16 }, work));
    expect(faults).toEqual([]);
  });
});
