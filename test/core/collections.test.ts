import { describe, expect, it } from 'vitest';
import { BoxedMap, UnorderedSet } from '../../src/core/collections.ts';

describe('a boxed map', () => {
  it('has the entries that were not removed, in the order of insertion', () => {
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

  it('leaves out entries that are removed during an iteration', () => {
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

describe('an unordered set', () => {
  it('has the members that were not removed, in any order of removal', () => {
    const crowd = new UnorderedSet<number>();
    const goes = [0, 1, 2, 3, 4].map((n) => crowd.add(n));
    for (const n of [4, 0, 2, 0]) goes[n]?.();
    expect(crowd.all().toSorted()).toEqual([1, 3]);
    expect(crowd.size).toBe(2);
    for (const go of goes) go();
    expect(crowd.all()).toEqual([]);
  });
});
