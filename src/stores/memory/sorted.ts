/** Items of a chunk: to insert or delete one moves at most that many pointers. */
const chunkSize = 512;

/**
 * A sorted list in chunks: the cost to find, add or delete an item hardly grows with their number. Most items are added
 * at the end. No two items may be equal, and none may change its position while it is in the list.
 */
export class Sorted<T> {
  readonly #compare: (a: T, b: T) => number;
  #chunks: T[][] = [];
  #size = 0;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#chunks[0]?.[0];
  }

  get last(): T | undefined {
    return this.#chunks.at(-1)?.at(-1);
  }

  add(item: T): void {
    this.#size += 1;
    const last = this.last;
    const tail = this.#chunks.at(-1);
    if (tail === undefined || last === undefined) {
      this.#chunks = [[item]];
    } else if (this.#compare(last, item) < 0) {
      if (tail.length < chunkSize) tail.push(item);
      else this.#chunks.push([item]);
    } else {
      const [at, index] = this.#position((other) => this.#compare(other, item) >= 0);
      const chunk = this.#chunks[at] ?? tail;
      chunk.splice(index, 0, item);
      if (chunk.length > chunkSize) this.#chunks.splice(at + 1, 0, chunk.splice(chunkSize / 2));
    }
  }

  /** Does nothing where the list does not have the item. */
  delete(item: T): void {
    const [at, index] = this.#position((other) => this.#compare(other, item) >= 0);
    const chunk = this.#chunks[at];
    if (chunk?.[index] !== item) return;
    this.#size -= 1;
    chunk.splice(index, 1);
    if (chunk.length === 0) this.#chunks.splice(at, 1);
  }

  /**
   * Iterates from the first item for which `holds` is true, as it must be for all later ones. Do not modify meanwhile.
   */
  *ascending(holds: (item: T) => boolean = () => true): Generator<T, void, undefined> {
    let [at, index] = this.#position(holds);
    for (; at < this.#chunks.length; at += 1, index = 0) {
      const chunk = this.#chunks[at] ?? [];
      for (; index < chunk.length; index += 1) yield chunk[index] as T;
    }
  }

  /** Iterates backwards, from the last item for which `holds` is false. */
  *descending(holds: (item: T) => boolean = () => false): Generator<T, void, undefined> {
    let [at, index] = this.#position(holds);
    for (; at >= 0; at -= 1, index = this.#chunks[at]?.length ?? 0) {
      const chunk = this.#chunks[at] ?? [];
      while (index > 0) yield chunk[--index] as T;
    }
  }

  /** The chunk, and the index in it, of the first item for which `holds` is true. */
  #position(holds: (item: T) => boolean): [at: number, index: number] {
    const at = firstIndex(this.#chunks, (chunk) => holds(chunk.at(-1) as T));
    return [at, firstIndex(this.#chunks[at] ?? [], holds)];
  }
}

/** Index of the first item for which `holds` is true, by bisection; the length where there is none. */
function firstIndex<T>(list: readonly T[], holds: (item: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(list[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}
