import { vi } from 'vitest';

/** Calls `work` until it does not throw, and resolves to its result. `vi.waitFor` alone gives up after a second. */
export const eventually = <T>(work: () => T | Promise<T>, interval = 5): Promise<T> =>
  vi.waitFor(work, { timeout: 120_000, interval });
