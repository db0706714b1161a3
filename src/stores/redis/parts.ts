import type { Partitions } from '../../core/ports/store.ts';
import { within } from '../../core/timing.ts';

/** Milliseconds for which the other parts are waited for when one has answered: one that hangs must not hold up all. */
const lateAfter = 1_000;

/** The parts of a store. The last four digits of an id decide its part: see `Partitions`. */
export class Parts<Part> implements Partitions {
  readonly #all: readonly Part[];
  /** The part that `inTurn` asks first. */
  #first = 0;

  constructor(all: readonly Part[]) {
    if (all.length === 0) throw new RangeError('a store has at least one part');
    this.#all = all;
  }

  get count(): number {
    return this.#all.length;
  }

  /** An id without four digits at its end has the first part. */
  of(id: string): number {
    return (Number.parseInt(id.slice(-4), 16) || 0) % this.#all.length;
  }

  /** The part of a run, a session, a resource or a delivery. */
  with(id: string): Part {
    return this.at(this.of(id));
  }

  at(index: number): Part {
    const part = this.#all[index];
    if (part === undefined) throw new RangeError(`the store has no part ${index}`);
    return part;
  }

  /** Asks all parts, or some, at once. Rejects with the first error, when all have answered. */
  async each<Answer>(
    ask: (part: Part, index: number) => Promise<Answer>,
    indexes: Iterable<number> = this.#all.keys(),
  ): Promise<Answer[]> {
    return allOf(Array.from(indexes, async (index) => ask(this.at(index), index)));
  }

  /**
   * The answers of those parts that answer soon after the first one, of all or of some. Rejects with an error only where
   * none answers: what waits in the others waits longer.
   */
  async answered<Answer>(
    ask: (part: Part, index: number) => Promise<Answer>,
    indexes: Iterable<number> = this.#all.keys(),
  ): Promise<Answer[]> {
    const found: Answer[] = [];
    const asked = Array.from(indexes, async (index) => found.push(await ask(this.at(index), index)));
    await Promise.any(asked).catch(() => {});
    await within(lateAfter, Promise.allSettled(asked)).catch(() => {});
    if (found.length === 0) await Promise.all(asked);
    return [...found];
  }

  /**
   * Asks one part after the other, each time from the next one on, until there are `limit` things. Leaves out parts that do
   * not answer. Rejects only where no part has given anything, and one has failed.
   */
  async inTurn<Thing>(
    limit: number,
    ask: (part: Part, limit: number, index: number) => Promise<readonly Thing[]>,
  ): Promise<Thing[]> {
    this.#first = (this.#first + 1) % this.count;
    const found: Thing[] = [];
    let failure: unknown;
    for (let step = 0; step < this.count && found.length < limit; step += 1) {
      const index = (this.#first + step) % this.count;
      try {
        found.push(...(await ask(this.at(index), limit - found.length, index)));
      } catch (error) {
        failure = error;
      }
    }
    if (found.length === 0 && failure !== undefined) throw failure;
    return found;
  }

  /** The ids by the number of their part. */
  group(ids: readonly string[]): Map<number, string[]> {
    const groups = new Map<number, string[]>();
    for (const id of ids) {
      const index = this.of(id);
      const group = groups.get(index);
      if (group === undefined) groups.set(index, [id]);
      else group.push(id);
    }
    return groups;
  }
}

/** Waits for all promises. Rejects with the first error, when all are settled. */
export async function allOf<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(promises);
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}
