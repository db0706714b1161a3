import { LRUCache } from 'lru-cache';
import { BoxedMap } from '../../core/collections.ts';

/** Reads that several readers share: each is made once at a time, and the newest answers are kept. */
export class SharedReads<V extends object | string> {
  readonly #kept: LRUCache<string, V>;
  #reading = new BoxedMap<Promise<V>>();

  /** Keeps answers of so many characters in all, with their keys. */
  constructor(maxChars: number, charsOf: (answer: V) => number) {
    this.#kept = new LRUCache({ maxSize: maxChars, sizeCalculation: (answer, key) => key.length + charsOf(answer) });
  }

  /** What `read` answers to this key, or has answered. Rejects as `read` does. */
  async get(key: string, read: () => Promise<V>): Promise<V> {
    const known = this.#kept.get(key) ?? this.#reading.get(key);
    if (known !== undefined) return known;
    // The cache's own `fetch` would make an AbortController for each read.
    const reading = read();
    this.#reading.set(key, reading);
    try {
      const answer = await reading;
      if (this.#reading.get(key) === reading) this.#kept.set(key, answer);
      return answer;
    } finally {
      if (this.#reading.get(key) === reading) this.#reading.delete(key);
    }
  }

  /** Keeps nothing, nor the answers of the reads under way. */
  clear(): void {
    this.#kept.clear();
    this.#reading = new BoxedMap();
  }
}
