import { Sorted } from './sorted.ts';

/** Sorted items by the name of what they belong to. */
export class Groups<T> {
  readonly #compare: (a: T, b: T) => number;
  readonly #groups = new Map<string, Sorted<T>>();

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get(name: string): Sorted<T> | undefined {
    return this.#groups.get(name);
  }

  /** A copy, for a loop that deletes. */
  all(name: string): T[] {
    return [...(this.#groups.get(name)?.ascending() ?? [])];
  }

  add(name: string, item: T): void {
    const group = this.#groups.get(name) ?? new Sorted(this.#compare);
    this.#groups.set(name, group);
    group.add(item);
  }

  delete(name: string, item: T): void {
    const group = this.#groups.get(name);
    group?.delete(item);
    if (group?.size === 0) this.#groups.delete(name);
  }
}
