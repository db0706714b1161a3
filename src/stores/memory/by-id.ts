/** Values of a chunk: its Map fits into the caches of the processor. */
const chunkSize = 512;

interface Chunk<V> {
  /** Where it begins. */
  readonly first: string;
  readonly values: Map<string, V>;
}

const whole = (id: string): string => id;

/**
 * Values by their ids, most of which are larger than all ids before. In one Map of 100,000 values, a new one takes a
 * microsecond, because its memory is in no cache of the processor, and V8 copies the whole Map whenever it has doubled. Here
 * it goes into the last chunk, which takes a fifth of that, and needs no lookup to see that it is new.
 */
export class ById<V extends object> {
  readonly #placeOf: (id: string) => string;
  readonly #chunks: Chunk<V>[] = [];
  /** Values whose ids came after larger ones: clients choose the ids of sessions. */
  readonly #others = new Map<string, V>();
  #largest = '';

  /** `placeOf` is the part of an id that grows; default: the whole. */
  constructor(placeOf: (id: string) => string = whole) {
    this.#placeOf = placeOf;
  }

  get isEmpty(): boolean {
    return this.#chunks.length === 0 && this.#others.size === 0;
  }

  get(id: string): V | undefined {
    const place = this.#placeOf(id);
    if (place > this.#largest) return undefined;
    return this.#chunks[this.#indexOf(place)]?.values.get(id) ?? this.#others.get(id);
  }

  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  set(id: string, value: V): void {
    const place = this.#placeOf(id);
    if (place > this.#largest) {
      this.#largest = place;
      this.#add(id, place, value);
      return;
    }
    const values = this.#chunks[this.#indexOf(place)]?.values;
    if (values?.has(id)) values.set(id, value);
    else this.#others.set(id, value);
  }

  delete(id: string): void {
    if (this.#others.delete(id)) return;
    const index = this.#indexOf(this.#placeOf(id));
    const values = this.#chunks[index]?.values;
    if (values?.delete(id) && values.size === 0) this.#chunks.splice(index, 1);
  }

  /** Nothing may be deleted meanwhile. */
  *values(): Generator<V, void, undefined> {
    for (const { values } of this.#chunks) yield* values.values();
    yield* this.#others.values();
  }

  #add(id: string, place: string, value: V): void {
    const last = this.#chunks.at(-1);
    if (last !== undefined && last.values.size < chunkSize) last.values.set(id, value);
    else this.#chunks.push({ first: place, values: new Map([[id, value]]) });
  }

  /**
   * Index of the chunk that has the ids of a place, if one has them. Begins at the last one, where nearly all lookups end:
   * runs that are written are new.
   */
  #indexOf(place: string): number {
    let high = this.#chunks.length;
    let low = high - 1;
    for (let step = 1; low > 0 && this.#beginsAfter(low, place); step *= 2) {
      high = low;
      low = Math.max(0, low - step);
    }
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (this.#beginsAfter(middle, place)) high = middle;
      else low = middle;
    }
    return low;
  }

  #beginsAfter(index: number, place: string): boolean {
    return (this.#chunks[index]?.first ?? '') > place;
  }
}
