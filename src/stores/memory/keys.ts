import type { Key } from '../../core/store.ts';
import { compareText } from './records.ts';
import { Sorted } from './sorted.ts';

/** The Idempotency-Keys of a memory store. */
export class MemoryKeys {
  readonly #keys = new Map<string, Key>();
  readonly #byAge = new Sorted<Key>(
    (a, b) => compareText(a.created_at, b.created_at) || compareText(nameOf(a), nameOf(b)),
  );

  find(key: Pick<Key, 'scope' | 'key'>): Key | undefined {
    return this.#keys.get(nameOf(key));
  }

  put(key: Key): void {
    const before = this.find(key);
    if (before !== undefined) this.#byAge.delete(before);
    this.#keys.set(nameOf(key), key);
    this.#byAge.add(key);
  }

  removeOfOwner(owner: string): void {
    for (const key of this.#keys.values()) if (key.scope.startsWith(`${owner} `)) this.#delete(key);
  }

  /** Deletes up to `count` keys from before a time. Returns how many more it could delete. */
  sweep(before: string, count: number): number {
    let left = count;
    for (let old = this.#byAge.first; left > 0 && old !== undefined; old = this.#byAge.first, left -= 1) {
      if (old.created_at >= before) break;
      this.#delete(old);
    }
    return left;
  }

  #delete(key: Key): void {
    this.#byAge.delete(key);
    this.#keys.delete(nameOf(key));
  }
}

/** A key with its scope, as a key of the map. */
const nameOf = ({ scope, key }: Pick<Key, 'scope' | 'key'>): string => JSON.stringify([scope, key]);
