/** Examples printed for each kind of fault. */
const maxExamples = 8;
/** Characters of an example. */
const maxExample = 1_500;

/** The faults found, by kind. One defect of a server may cause a fault in every run, so examples are limited. */
export class Faults {
  readonly #kinds = new Map<string, { count: number; examples: string[] }>();
  readonly #maxExample: number;

  constructor(longest = maxExample) {
    this.#maxExample = longest;
  }

  add(kind: string, example: string): void {
    const known = this.#kinds.get(kind) ?? { count: 0, examples: [] };
    this.#kinds.set(kind, known);
    known.count += 1;
    if (known.examples.length < maxExamples) known.examples.push(example);
  }

  get count(): number {
    return [...this.#kinds.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** A line for each kind, followed by its examples. */
  lines(): string[] {
    return [...this.#kinds].flatMap(([kind, { count, examples }]) => [
      `${count} × ${kind}`,
      ...examples.map((example) => `    ${this.#cut(example)}`),
      ...(count > examples.length ? [`    and ${count - examples.length} more`] : []),
    ]);
  }

  /** The number of faults of each kind. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#kinds].map(([kind, { count }]) => [kind, count]));
  }

  #cut(example: string): string {
    return example.length > this.#maxExample ? `${example.slice(0, this.#maxExample)}…` : example;
  }
}

/** Durations in milliseconds, for statistics. */
export class Durations {
  readonly #values: number[] = [];

  add(milliseconds: number): void {
    this.#values.push(milliseconds);
  }

  /** Median, 99th percentile, maximum and count. */
  toString(): string {
    if (this.#values.length === 0) return 'never';
    const sorted = this.#values.toSorted((a, b) => a - b);
    const at = (q: number): number =>
      Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0);
    return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms (${sorted.length})`;
  }
}

/** Waits. When a fault is injected is a random event, so these tests use real time. */
export const sleep = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds));
