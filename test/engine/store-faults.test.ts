import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { methods } from '../support/faulty-store.ts';
import { failEachCall } from '../support/store-faults.ts';

describe('a call of a store that fails once', () => {
  it.each(methods)('%s: leaves no run open, and loses nothing that a reader saw', async (method) => {
    expect(await failEachCall(() => openStore('memory:'), method, 2)).toBeGreaterThan(0);
  });
});
