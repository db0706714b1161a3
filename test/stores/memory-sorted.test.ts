import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Sorted } from '../../src/stores/memory/sorted.ts';

interface Item {
  readonly key: number;
}

describe('a sorted list', () => {
  it('has the items of a sorted array, whatever is added and deleted', () => {
    const key = fc.integer({ min: 0, max: 3_000 });
    const steps = fc.array(fc.tuple(fc.boolean(), key), { minLength: 1, maxLength: 3_000 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2_000 }), steps, key, (begun, steps, from) => {
        const sorted = new Sorted<Item>((a, b) => a.key - b.key);
        const model = new Map<number, Item>();
        const add = (key: number): void => {
          if (model.has(key)) return;
          const item = { key };
          model.set(key, item);
          sorted.add(item);
        };
        for (let key = 0; key < begun; key += 1) add(key);
        for (const [adds, key] of steps) {
          if (adds) add(key);
          else {
            sorted.delete(model.get(key) ?? { key });
            model.delete(key);
          }
        }
        const all = [...model.keys()].sort((a, b) => a - b);
        const keys = (items: Iterable<Item>): number[] => [...items].map(({ key }) => key);
        expect(keys(sorted.ascending())).toEqual(all);
        expect(keys(sorted.descending())).toEqual(all.toReversed());
        expect(keys(sorted.ascending(({ key }) => key > from))).toEqual(all.filter((key) => key > from));
        expect(keys(sorted.descending(({ key }) => key >= from))).toEqual(all.filter((key) => key < from).toReversed());
        expect([sorted.size, sorted.first?.key, sorted.last?.key]).toEqual([all.length, all[0], all.at(-1)]);
      }),
      { numRuns: 60 },
    );
  });
});
