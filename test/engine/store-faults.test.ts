import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { failEachCall, scripted } from '../support/store-faults.ts';

describe('a call of a store that fails once', () => {
  it.each(scripted)('%s: leaves no run open, and loses nothing that a reader saw', async (method) => {
    expect(await failEachCall(() => openStore('memory:'), method, 2)).toBeGreaterThan(0);
  });
});
