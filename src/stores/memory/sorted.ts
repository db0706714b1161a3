/** Items of one piece: to insert or delete one moves at most so many pointers. */
const pieceSize = 512;

/**
 * Items in an order, in pieces: each is found, added and deleted at a cost that hardly grows with their number. Most are
 * added at the end. No two may be equal, and none may change its place while it is here.
 */
export class Sorted<T> {
  readonly #compare: (a: T, b: T) => number;
  #pieces: T[][] = [];
  #size = 0;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#pieces[0]?.[0];
  }

  get last(): T | undefined {
    return this.#pieces.at(-1)?.at(-1);
  }

  add(item: T): void {
    this.#size += 1;
    const last = this.last;
    const tail = this.#pieces.at(-1);
    if (tail === undefined || last === undefined) {
      this.#pieces = [[item]];
    } else if (this.#compare(last, item) < 0) {
      if (tail.length < pieceSize) tail.push(item);
      else this.#pieces.push([item]);
    } else {
      const [at, index] = this.#place((one) => this.#compare(one, item) >= 0);
      const piece = this.#pieces[at] ?? tail;
      piece.splice(index, 0, item);
      if (piece.length > pieceSize) this.#pieces.splice(at + 1, 0, piece.splice(pieceSize / 2));
    }
  }

  /** Nothing where it is not here. */
  delete(item: T): void {
    const [at, index] = this.#place((one) => this.#compare(one, item) >= 0);
    const piece = this.#pieces[at];
    if (piece?.[index] !== item) return;
    this.#size -= 1;
    piece.splice(index, 1);
    if (piece.length === 0) this.#pieces.splice(at, 1);
  }

  /** From the first one on for which that holds; it has to hold for all after it. Not to be changed meanwhile. */
  *ascending(holds: (item: T) => boolean = () => true): Generator<T, void, undefined> {
    let [at, index] = this.#place(holds);
    for (; at < this.#pieces.length; at += 1, index = 0) {
      const piece = this.#pieces[at] ?? [];
      for (; index < piece.length; index += 1) yield piece[index] as T;
    }
  }

  /** Backwards, from the last one on for which that does not hold. */
  *descending(holds: (item: T) => boolean = () => false): Generator<T, void, undefined> {
    let [at, index] = this.#place(holds);
    for (; at >= 0; at -= 1, index = this.#pieces[at]?.length ?? 0) {
      const piece = this.#pieces[at] ?? [];
      while (index > 0) yield piece[--index] as T;
    }
  }

  /** The piece, and the index in it, of the first item for which that holds. */
  #place(holds: (item: T) => boolean): [at: number, index: number] {
    const at = firstIndex(this.#pieces, (piece) => holds(piece.at(-1) as T));
    return [at, firstIndex(this.#pieces[at] ?? [], holds)];
  }
}

/** By bisection; the length where it holds for none. */
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
