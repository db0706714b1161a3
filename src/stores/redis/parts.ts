import { allOf } from '../../core/all-of.ts';
import type { Partitions } from '../../core/ports/store.ts';
import { within } from '../../core/timing.ts';

/** Milliseconds after which a part is away that does not answer. */
const lateAfter = 1_000;

/**
 * The parts of a store. The last four digits of an id decide its part: see `Partitions`. A part is away from a call
 * that fails or is late until the next call that is answered. Other parts do not wait for a part that is away. `answered` asks
 * it all the same, and so learns when it is back.
 */
export class Parts<Part> implements Partitions {
  readonly #all: readonly Part[];
  /** The numbers of those that are away. */
  readonly #away = new Set<number>();
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

  answers(index: number): boolean {
    return !this.#away.has(index);
  }

  /** Asks one part, and learns whether it answers. */
  async ask<Answer>(index: number, ask: (part: Part, index: number) => Promise<Answer>): Promise<Answer> {
    const answered = ask(this.at(index), index);
    // Failed, or late.
    within(lateAfter, answered).catch(() => this.#away.add(index));
    const answer = await answered;
    this.#away.delete(index);
    return answer;
  }

  /**
   * Asks all parts, or some, at once. Rejects with the first error, when all have answered. What is asked may take long, and
   * says nothing of which parts are away.
   */
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
    const asked = Array.from(indexes, (index) => ({
      isAway: this.#away.has(index),
      answer: this.ask(index, ask).then((answer) => found.push(answer)),
    }));
    const answers = asked.map(({ answer }) => answer);
    await Promise.any(answers).catch(() => {});
    const expected = asked.filter(({ isAway }) => !isAway).map(({ answer }) => answer);
    await within(lateAfter, Promise.allSettled(expected)).catch(() => {});
    if (found.length === 0) await Promise.all(answers);
    return [...found];
  }

  /**
   * Asks one part after the other, each time from the next one on, until there are `limit` things. Leaves out parts that are
   * away, unless all are. Rejects only where no part has given anything, and one has failed. `indexes`: of all parts, or of
   * some, in order.
   */
  async inTurn<Thing>(
    limit: number,
    ask: (part: Part, limit: number, index: number) => Promise<readonly Thing[]>,
    indexes: readonly number[] = [...this.#all.keys()],
  ): Promise<Thing[]> {
    this.#first = (this.#first + 1) % this.count;
    const order = [
      ...indexes.filter((index) => index >= this.#first),
      ...indexes.filter((index) => index < this.#first),
    ];
    const answering = order.filter((index) => this.answers(index));
    const found: Thing[] = [];
    let failure: unknown;
    for (const index of answering.length > 0 ? answering : order) {
      if (found.length >= limit) break;
      try {
        const answer = this.ask(index, (part) => ask(part, limit - found.length, index));
        found.push(...(await within(lateAfter, answer)));
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
