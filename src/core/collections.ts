/**
 * Adds to a list that the caller owns, and returns the list; an empty one is replaced. V8 makes room for 17 entries at
 * the first push onto an empty array, and most lists of a run have one entry: a message, its part, a reader.
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

interface Box<V> {
  value: V | undefined;
}

/** Empty boxes beyond the number of entries at which a BoxedMap gets a new table. */
const maxEmpty = 8;

/**
 * A Map for entries that come and go: the runs in memory, the logs with pending writes. V8 gives a Map a new backing
 * table every so often, a small one at each removal, and the old table points to the new one. An old table in the old
 * generation so keeps all later tables and their entries alive until the next full collection. That was 2.4 KB for each
 * short run, which the collector copied twice. Here the table holds boxes, which are emptied on removal; now and then
 * the others get a Map of their own, to which no old table points. It costs 24 bytes an entry.
 */
export class BoxedMap<V extends object> {
  #boxes = new Map<string, Box<V>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: string): V | undefined {
    return this.#boxes.get(id)?.value;
  }

  /** Adds an entry at the end, or replaces the value of an existing one in its place. */
  set(id: string, value: V): void {
    const box = this.#boxes.get(id);
    if (box?.value !== undefined) {
      box.value = value;
      return;
    }
    if (box !== undefined) this.#boxes.delete(id);
    this.#boxes.set(id, { value });
    this.#size += 1;
  }

  delete(id: string): void {
    const box = this.#boxes.get(id);
    if (box?.value === undefined) return;
    box.value = undefined;
    this.#size -= 1;
    if (this.#boxes.size > 2 * this.#size + maxEmpty) this.#removeEmpty();
  }

  clear(): void {
    for (const box of this.#boxes.values()) box.value = undefined;
    this.#size = 0;
    this.#removeEmpty();
  }

  /** In the order of insertion; entries that are removed meanwhile are left out. */
  *values(): Generator<V, void, undefined> {
    for (const { value } of this.#boxes.values()) if (value !== undefined) yield value;
  }

  #removeEmpty(): void {
    const kept = new Map<string, Box<V>>();
    for (const [id, box] of this.#boxes) if (box.value !== undefined) kept.set(id, box);
    this.#boxes = kept;
  }
}
