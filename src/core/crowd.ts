/** A Set for what comes and goes, without the tables that keep what has gone; see `Roster`. In no order. */
export class Crowd<T> {
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
