/**
 * Adds to a list that the caller owns, and returns the list; an empty one is replaced. To push onto an empty array
 * makes room for 17, and most lists of a run have one entry: a message, its part, a reader.
 */
export function append<T>(list: T[], one: T): T[] {
  if (list.length === 0) return [one];
  list.push(one);
  return list;
}

/** A Set for what comes and goes, without the tables that keep what has gone; see `BoxedMap`. In no order. */
export class UnorderedSet<T> {
  readonly #members: { readonly one: T; at: number }[] = [];

  get size(): number {
    return this.#members.length;
  }

  /** Returns how it goes; the last one then takes its place. */
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

  /** Those who are here now: who goes meanwhile is among them. */
  all(): T[] {
    return this.#members.map(({ one }) => one);
  }
}

interface Box<V> {
  value: V | undefined;
}

/**
 * A Map for what comes and goes: the runs in hand, the logs that grow. V8 gives a Map a new table every so often, and
 * the old one points to the new one. A table that has reached old age while few things came and went so keeps alive,
 * dead as it is, every later table with all that it had, until the next full collection: 2.4 KB of each short run, copied
 * twice and collected with the old. Here tables have boxes, which are emptied. Costs 24 bytes an entry.
 */
export class BoxedMap<V extends object> {
  readonly #boxes = new Map<string, Box<V>>();

  get(id: string): V | undefined {
    return this.#boxes.get(id)?.value;
  }

  /** Adds it at the end, or replaces what was there, in its place. */
  set(id: string, value: V): void {
    const box = this.#boxes.get(id);
    if (box === undefined) this.#boxes.set(id, { value });
    else box.value = value;
  }

  delete(id: string): void {
    const box = this.#boxes.get(id);
    if (box === undefined) return;
    box.value = undefined;
    this.#boxes.delete(id);
  }

  clear(): void {
    for (const id of [...this.#boxes.keys()]) this.delete(id);
  }

  /** In the order in which they came; what goes meanwhile is left out. */
  *values(): Generator<V, void, undefined> {
    for (const { value } of this.#boxes.values()) if (value !== undefined) yield value;
  }
}
