import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { BoxedMap, UnorderedSet } from '../../src/core/collections.ts';

setFlagsFromString('--expose-gc');
const collect: (options?: { type: 'minor' }) => void = runInNewContext('gc');

/** Bytes by which the old generation grows in 20,000 steps with collections of the young one. */
function promoted(step: (n: number) => unknown): number {
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
      expect([roster.size, roster.get(id)]).toEqual([expected.size, expected.get(id)]);
    }
    expect([...roster.values()]).toEqual([...expected.values()]);
    for (const id of expected.keys()) roster.delete(id);
    expect([...roster.values()]).toEqual([]);
    expect(roster.size).toBe(0);
  });

  it('leaves nothing in the old generation of what comes and goes', () => {
    const roster = new BoxedMap<{ n: number }>();
    roster.set('first', { n: 0 });
    const idle = promoted((n) => ({ n, id: `run-${n}` }));
    const churned = promoted((n) => {
      const id = `run-${n}`;
      roster.set(id, { n });
      roster.delete(id);
    });
    expect(churned - idle).toBeLessThan(400_000);
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
