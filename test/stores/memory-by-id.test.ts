import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ById } from '../../src/stores/memory/by-id.ts';

interface Item {
  readonly id: string;
}

describe('values by their ids', () => {
  const idOf = (key: number): string => String(key).padStart(5, '0');

  it('are those of a Map, in whatever order ids come, and whatever is replaced and deleted', () => {
    const key = fc.integer({ min: 0, max: 9_000 });
    const steps = fc.array(fc.tuple(fc.boolean(), key), { maxLength: 1_000 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3_000 }), steps, fc.boolean(), (begun, steps, hasOwners) => {
        // Places may be the same for several ids, as those of sessions of several owners.
        const values = hasOwners ? new ById<Item>((id) => id.slice(1)) : new ById<Item>();
        const model = new Map<string, Item>();
        const set = (id: string): void => {
          const item = { id };
          model.set(id, item);
          values.set(id, item);
        };
        for (let key = 0; key < begun; key += 1) set(idOf(2 * key));
        for (const [sets, key] of steps) {
          const id = idOf(key);
          if (sets) set(id);
          else {
            values.delete(id);
            model.delete(id);
          }
        }
        const ids = Array.from({ length: 9_001 }, (_, key) => idOf(key));
        expect(ids.filter((id) => values.get(id) !== model.get(id) || values.has(id) !== model.has(id))).toEqual([]);
        const sorted = (items: Iterable<Item>): string[] => [...items].map(({ id }) => id).sort();
        expect(sorted(values.values())).toEqual(sorted(model.values()));
        expect(values.isEmpty).toBe(model.size === 0);
        for (const id of model.keys()) values.delete(id);
        expect(values.isEmpty).toBe(true);
      }),
      { numRuns: 20 },
    );
  });
});
