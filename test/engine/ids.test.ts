import fc from 'fast-check';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

// A separate copy of the module: other tests of this process may have passed ids of a node whose clock is years ahead.
let newId: () => string;
let sessionIdFor: (text: string) => string;

beforeAll(async () => {
  vi.resetModules();
  ({ newId, sessionIdFor } = await import('../../src/engine/ids.ts'));
});

describe('an id', () => {
  afterEach(() => vi.useRealTimers());

  it('is a UUID of version 7, with the time of its creation', () => {
    const before = Date.now();
    const id = newId();
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const made = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
    expect(made).toBeGreaterThanOrEqual(before);
    expect(made).toBeLessThanOrEqual(Date.now() + 1);
  });

  it('sorts after all earlier ids, however many there are in a millisecond', () => {
    const ids = Array.from({ length: 20_000 }, () => newId());
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids.map((id) => id.slice(18))).size).toBe(ids.length);
  });

  it('sorts after all earlier ids when the clock is set back', () => {
    const before = newId();
    vi.useFakeTimers({ now: Date.now() - 60_000 });
    expect(newId() > before).toBe(true);
  });
});

describe('the session of a client that has an id of its own for it', () => {
  it('is that id where it is a UUID, in lower case', () => {
    const id = newId();
    expect(sessionIdFor(id.toUpperCase())).toBe(id);
  });

  it('is a UUID of version 5 for any other text: the same each time, another one for another text', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        expect(sessionIdFor(a)).toMatch(/^[\da-f]{8}-[\da-f]{4}-5[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
        expect(sessionIdFor(a) === sessionIdFor(b)).toBe(a === b);
      }),
    );
  });
});
