import { isDeepStrictEqual } from 'node:util';

interface Effect {
  readonly name: string;
  readonly values: readonly unknown[];
  /** How many commits were durable when it began. */
  readonly commits: number;
}

/** What an agent under test does outside of its run: its fakes of a payment or a mail call `add`. */
export class Effects {
  #done: Effect[] = [];
  #commits = (): number => 0;

  /** An effect begins. `name` is unique within the run; `values` are those that the effect uses, such as a key. */
  add(name: string, ...values: readonly unknown[]): void {
    this.#done.push({ name, values: structuredClone([...values]), commits: this.#commits() });
  }

  /** Takes the effects of one life. `commits` counts the durable commits of the next one. */
  takeLife(commits: () => number = () => 0): Effect[] {
    const done = this.#done;
    this.#done = [];
    this.#commits = commits;
    return done;
  }
}

/** The effects that a life repeats with other values. Those that began later than the cut have not begun at all. */
export function changedEffects(first: readonly Effect[], life: readonly Effect[], cut: number): string[] {
  const begun = new Map(first.filter(({ commits }) => commits <= cut).map((effect) => [effect.name, effect.values]));
  return life.flatMap(({ name, values }) => {
    const before = begun.get(name);
    if (before === undefined || isDeepStrictEqual(before, values)) return [];
    return [`effect ${name} is repeated with ${JSON.stringify(values)}, not ${JSON.stringify(before)}`];
  });
}
