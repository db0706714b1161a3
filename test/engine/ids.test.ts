import { validate, version } from 'uuid';
import { describe, expect, it } from 'vitest';
import { newId } from '../../src/engine/ids.ts';

describe('the ids of runs and resources', () => {
  const ids = Array.from({ length: 100_000 }, newId);

  it('are UUIDs of version 7', () => {
    expect(ids.filter((id) => !validate(id) || version(id) !== 7)).toEqual([]);
  });

  it('say when they were made', () => {
    const before = Date.now();
    const [high = '', low = ''] = newId().split('-');
    const made = Number.parseInt(high + low, 16);
    expect(made).toBeGreaterThanOrEqual(before);
    expect(made).toBeLessThanOrEqual(Date.now() + 1);
  });

  it('are in the order in which they were made', () => {
    expect(ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? ''))).toBe(true);
  });

  it('end in something that nobody can guess from those before', () => {
    expect(new Set(ids.map((id) => id.slice(24))).size).toBeGreaterThan(99_990);
  });
});
