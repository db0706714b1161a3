import { within } from '../../core/timing.ts';

/** Work of an agent that goes on after it is unsubscribed: promises, and async generators that await one. */
export class PendingWork {
  readonly #work = new Set<Promise<unknown>>();

  track(work: Promise<unknown>): void {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }

  /** Resolves when all of it has stopped, and `also`, or after so many milliseconds; 0 for never. */
  async stopped(milliseconds: number, also: () => Promise<void> | undefined): Promise<void> {
    const stopped = this.#stopped(also);
    await (milliseconds > 0 ? within(milliseconds, stopped) : stopped).catch(() => undefined);
  }

  // In a loop: work that stops may begin other work.
  async #stopped(also: () => Promise<void> | undefined): Promise<void> {
    await also();
    while (this.#work.size > 0) {
      await Promise.allSettled(this.#work);
      await also();
    }
  }
}
