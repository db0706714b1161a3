import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { BoxedMap, UnorderedSet } from '../../src/core/collections.ts';

setFlagsFromString('--expose-gc');
const collect: (options?: { type: 'minor' }) => void = runInNewContext('gc');

/** Bytes by which the old generation grows in 20,000 steps with collections of the young one. */
function growth(step: (n: number) => unknown): number {
  const used = (): number =>
    getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0;
  collect();
  const before = used();
  for (let n = 0; n < 20_000; n += 1) {
    step(n);
    if (n % 500 === 0) collect({ type: 'minor' });
  }
  return used() - before;
}

describe('a boxed map', () => {
  it('has the entries that were not removed, in the order of insertion', () => {
    const roster = new BoxedMap<{ n: number }>();
    for (let n = 0; n < 5; n += 1) roster.set(`${n}`, { n });
    roster.delete('1');
    roster.delete('1');
    roster.set('3', { n: 33 });
    expect(roster.all().map(({ n }) => n)).toEqual([0, 2, 33, 4]);
    expect(roster.get('1')).toBeUndefined();
    expect(roster.get('2')).toEqual({ n: 2 });
    expect(roster.first()).toEqual({ n: 0 });
    roster.clear();
    expect([roster.all(), roster.first(), roster.size]).toEqual([[], undefined, 0]);
  });

  it('has an entry that comes again at the end', () => {
    const roster = new BoxedMap<{ n: number }>();
    for (let n = 0; n < 3; n += 1) roster.set(`${n}`, { n });
    roster.delete('0');
    roster.set('0', { n: 10 });
    expect(roster.all().map(({ n }) => n)).toEqual([1, 2, 10]);
    expect(roster.first()).toEqual({ n: 1 });
  });

  it('is as a Map is, for entries that come, go and come again', () => {
    const roster = new BoxedMap<{ n: number }>();
    const expected = new Map<string, { n: number }>();
    const ids: string[] = [];
    // An entry is there for ten steps; every third one comes again.
    for (let n = 0; n < 1_000; n += 1) {
      const id = n % 3 === 0 ? `again-${n % 13}` : `once-${n}`;
      const gone = ids[n - 10] ?? '';
      ids.push(id);
      roster.set(id, { n });
      expected.set(id, { n });
      roster.delete(gone);
      expected.delete(gone);
      expect([roster.size, roster.get(id), roster.first()]).toEqual([expected.size, { n }, [...expected.values()][0]]);
      expect(roster.all()).toEqual([...expected.values()]);
    }
    for (const id of expected.keys()) roster.delete(id);
    expect([roster.all(), roster.size]).toEqual([[], 0]);
  });

  it.each([
    ['come once', (n: number) => `run-${n}`],
    ['come again', (n: number) => `run-${n % 3}`],
  ])('leaves nothing in the old generation of entries that %s', (_, idOf) => {
    const roster = new BoxedMap<{ n: number }>();
    const idle = (n: number): unknown => ({ n, id: idOf(n) });
    growth(idle);
    const without = growth(idle);
    const churned = growth((n) => {
      const id = idOf(n);
      roster.set(id, { n });
      roster.delete(id);
    });
    expect(churned - without).toBeLessThan(500_000);
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
