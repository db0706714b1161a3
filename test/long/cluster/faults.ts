/** How many of one kind are told in full. */
const told = 8;

/** What is wrong, by kind: one fault of a server may show in every run, and the list has to stay readable. */
export class Faults {
  readonly #kinds = new Map<string, { count: number; examples: string[] }>();

  add(kind: string, example: string): void {
    const known = this.#kinds.get(kind) ?? { count: 0, examples: [] };
    this.#kinds.set(kind, known);
    known.count += 1;
    if (known.examples.length < told) known.examples.push(example);
  }

  get count(): number {
    return [...this.#kinds.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** A line for each kind, and below it what it is about. */
  lines(): string[] {
    return [...this.#kinds].flatMap(([kind, { count, examples }]) => [
      `${count} × ${kind}`,
      ...examples.map((example) => `    ${example.length > 1_500 ? `${example.slice(0, 1_500)}…` : example}`),
      ...(count > examples.length ? [`    and ${count - examples.length} more`] : []),
    ]);
  }
}
