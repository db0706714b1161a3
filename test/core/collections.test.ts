import { describe, expect, it } from 'vitest';
import { BoxedMap, UnorderedSet } from '../../src/core/collections.ts';

describe('a roster', () => {
  it('has what came and did not go, in the order in which it came', () => {
    const roster = new BoxedMap<{ n: number }>();
    for (let n = 0; n < 5; n += 1) roster.set(`${n}`, { n });
    roster.delete('1');
    roster.delete('1');
    roster.set('3', { n: 33 });
    expect([...roster.values()].map(({ n }) => n)).toEqual([0, 2, 33, 4]);
    expect(roster.get('1')).toBeUndefined();
    expect(roster.get('2')).toEqual({ n: 2 });
    roster.clear();
    expect([...roster.values()]).toEqual([]);
  });

  it('leaves out what goes while it is looked through', () => {
    const roster = new BoxedMap<{ n: number }>();
    for (let n = 0; n < 3; n += 1) roster.set(`${n}`, { n });
    const seen: number[] = [];
    for (const { n } of roster.values()) {
      seen.push(n);
      roster.delete(`${n + 1}`);
    }
    expect(seen).toEqual([0, 2]);
  });
});

describe('a crowd', () => {
  it('has whoever came and did not go, in whatever order they go', () => {
    const crowd = new UnorderedSet<number>();
    const goes = [0, 1, 2, 3, 4].map((n) => crowd.add(n));
    for (const n of [4, 0, 2, 0]) goes[n]?.();
    expect(crowd.all().toSorted()).toEqual([1, 3]);
    expect(crowd.size).toBe(2);
    for (const go of goes) go();
    expect(crowd.all()).toEqual([]);
  });
});
