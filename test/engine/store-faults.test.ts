import { beforeAll, describe, expect, it } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { methods } from '../support/faulty-store.ts';
import { countCalls, failEachCall } from '../support/store-faults.ts';

const open = () => openStore('memory:');

describe('a call of a store that fails once', () => {
  let calls: Awaited<ReturnType<typeof countCalls>>;
  beforeAll(async () => {
    calls = await countCalls(open);
  });

  it.each(methods)('%s: leaves no run open, and loses nothing that a reader saw', async (method) => {
    expect(await failEachCall(open, method, calls, 2)).toBeGreaterThan(0);
  });
});
