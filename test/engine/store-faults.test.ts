import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { methods } from '../support/faulty-store.ts';
import { failEachCall } from '../support/store-faults.ts';

describe.each(['memory:'])('each call of %s that fails once', (url) => {
  it.each(methods)(
    '%s: leaves no run open, and loses nothing that a reader saw',
    { timeout: 60_000 },
    async (method) => {
      expect(await failEachCall(() => openStore(url), method)).toBeGreaterThan(0);
    },
  );
});
