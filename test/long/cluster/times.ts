/** Milliseconds of something that happened often. */
export class Times {
  readonly #values: number[] = [];

  add(milliseconds: number): void {
    this.#values.push(milliseconds);
  }

  get count(): number {
    return this.#values.length;
  }

  get max(): number {
    return this.#at(1);
  }

  /** How often, median, 99th percentile and most, in whole milliseconds. */
  toString(): string {
    if (this.#values.length === 0) return 'never';
    const [p50, p99, max] = [0.5, 0.99, 1].map((q) => Math.round(this.#at(q)));
    return `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms (${this.#values.length})`;
  }

  #at(q: number): number {
    const sorted = this.#values.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
  }
}
