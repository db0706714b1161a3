import { Dice } from '../support/dice.ts';

/** Random numbers of a seed. Each actor of a plan has a source of its own, so that dropping one changes no other. */
export class Random extends Dice {
  readonly #seed: number;

  constructor(seed: number) {
    super(seed);
    this.#seed = seed;
  }

  /** A source of its own for each name. */
  fork(name: string): Random {
    let hash = this.#seed ^ 0x811c9dc5;
    for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
    return new Random(hash ^ (hash >>> 15));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  /** One of them, each as likely as its weight. */
  weighted<T>(choices: readonly (readonly [weight: number, choice: T])[]): T {
    let left = this.next() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, choice] of choices) {
      left -= weight;
      if (left < 0) return choice;
    }
    throw new RangeError('nothing to choose from');
  }

  uuid(): `${string}-${string}-${string}-${string}-${string}` {
    const hex = (length: number): string => {
      let text = '';
      while (text.length < length) text += this.below(0x10000).toString(16).padStart(4, '0');
      return text.slice(0, length);
    };
    return `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`;
  }
}
