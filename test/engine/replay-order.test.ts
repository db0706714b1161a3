import { describe, expect, it } from 'vitest';
import { checkPlans } from '../support/replay-check.ts';

describe('a durable run of any plan', () => {
  // replay-order.servers.ts has the next plans, test/long/replay.ts thousands.
  it('ends the same, after whichever commit it is cut off', async () => {
    expect(await checkPlans(1, 80)).toEqual([]);
  });
});
