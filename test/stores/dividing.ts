import type { Outcome, Write } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';

/** A store whose commits may have writes to several of its partitions. An engine has a group commit for each instead. */
export function dividing(store: Store): Store {
  const { partitions } = store;
  if (partitions === undefined) return store;
  const commit = async (writes: readonly Write[]): Promise<Outcome[]> => {
    const outcomes = new Map<Write, Outcome | undefined>();
    for (let part = 0; part < partitions.count; part += 1) {
      const ofPart = writes.filter(({ row }) => partitions.of(row.run_id) === part);
      const found = ofPart.length > 0 ? await store.commit(ofPart) : [];
      for (const [index, write] of ofPart.entries()) outcomes.set(write, found[index]);
    }
    return writes.map((write) => outcomes.get(write) ?? 'fenced');
  };
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = name === 'commit' ? commit : Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
