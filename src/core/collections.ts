/**
 * Adds to a list that the caller owns, and returns the list. An empty list is replaced: a push onto it would make room for
 * 17 entries, and most lists of a run have one.
 */
export function append<T>(list: T[], one: T): T[] {
  if (list.length === 0) return [one];
  list.push(one);
  return list;
}

/** An empty list with room for one entry, where most lists get one: see `append`. */
export function roomForOne(): string[] {
  const list = [''];
  list.pop();
  return list;
}

/** The order of texts by their UTF-16 units, as databases sort ids. */
export const compareText = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1);

/** Unordered set with O(1) removal. Unlike `Set`, it does not retain old backing tables; see `BoxedMap`. */
export class UnorderedSet<T> {
  readonly #members: { readonly one: T; at: number }[] = [];

  get size(): number {
    return this.#members.length;
  }

  /** Returns a function that removes the member; the last member then takes its place. */
  add(one: T): () => void {
    const member = { one, at: this.#members.length };
    this.#members.push(member);
    return () => {
      if (this.#members[member.at] !== member) return;
      const last = this.#members.pop();
      if (last === undefined || last === member) return;
      last.at = member.at;
      this.#members[last.at] = last;
    };
  }

  /** A copy of the members; removals during an iteration do not change it. */
  all(): T[] {
    return this.#members.map(({ one }) => one);
  }
}

/** Counts by key. A key whose count is zero takes no memory. */
export class Counts {
  readonly #counts = new Map<string, number>();
  #total = 0;

  /** The sum of all counts. */
  get total(): number {
    return this.#total;
  }

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  add(key: string, more: number): void {
    const count = this.of(key) + more;
    if (count > 0) this.#counts.set(key, count);
    else this.#counts.delete(key);
    this.#total += more;
  }
}

interface Box<V> {
  readonly id: string;
  /** Undefined where the entry was removed. */
  value: V | undefined;
  /** The boxes before and after it, in the order of insertion. */
  before: Box<V> | undefined;
  after: Box<V> | undefined;
}

/** Empty boxes that a BoxedMap keeps beyond the number of its entries. */
const spareBoxes = 8;

/**
 * A Map for entries that come and go, such as the runs in memory. A Map replaces its table when it grows or shrinks, and
 * the old table points to the new one. So an old table keeps later entries alive until the next full collection.
 * Here, an entry that is removed leaves an empty box, and the table stays. Now and then, the boxes with entries get a new
 * Map, to which no old table points. These boxes are linked in the order of insertion.
 */
export class BoxedMap<V extends object> {
  #boxes = new Map<string, Box<V>>();
  #size = 0;
  #first: Box<V> | undefined;
  #last: Box<V> | undefined;

  get size(): number {
    return this.#size;
  }

  get(id: string): V | undefined {
    return this.#boxes.get(id)?.value;
  }

  /** The entry that was added before all others. */
  first(): V | undefined {
    return this.#first?.value;
  }

  /** A copy of the entries, in the order of insertion. */
  all(): V[] {
    const entries: V[] = [];
    for (let box = this.#first; box?.value !== undefined; box = box.after) entries.push(box.value);
    return entries;
  }

  /** Adds an entry at the end, or replaces the value of an existing one in its place. */
  set(id: string, value: V): void {
    let box = this.#boxes.get(id);
    if (box === undefined) {
      box = { id, value: undefined, before: undefined, after: undefined };
      this.#boxes.set(id, box);
    }
    if (box.value === undefined) this.#link(box);
    box.value = value;
  }

  delete(id: string): void {
    const box = this.#boxes.get(id);
    if (box?.value === undefined) return;
    box.value = undefined;
    this.#unlink(box);
    if (this.#boxes.size > 2 * this.#size + spareBoxes) this.#removeEmpty();
  }

  clear(): void {
    for (let box = this.#first; box !== undefined; box = this.#first) this.delete(box.id);
  }

  #link(box: Box<V>): void {
    box.before = this.#last;
    if (this.#last === undefined) this.#first = box;
    else this.#last.after = box;
    this.#last = box;
    this.#size += 1;
  }

  /** Also clears the links of the box: as an old object, it would keep the younger boxes that it was linked to. */
  #unlink(box: Box<V>): void {
    const { before, after } = box;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    box.before = undefined;
    box.after = undefined;
    this.#size -= 1;
  }

  #removeEmpty(): void {
    this.#boxes = new Map();
    for (let box = this.#first; box !== undefined; box = box.after) this.#boxes.set(box.id, box);
  }
}
