import { describe, expect, it } from 'vitest';
import { checkPlans } from '../support/replay-check.ts';

describe('a durable run of any of many plans', () => {
  it('ends the same, after whichever commit it is cut off', async () => {
    expect(await checkPlans(81, 200)).toEqual([]);
  });
});
