import { within } from '../../core/timing.ts';

/** Work of an agent that goes on after it is unsubscribed: promises, and async generators that await one. */
export class PendingWork {
  /** Made for the first promise: most agents have none. */
  #work: Set<Promise<unknown>> | undefined;

  track(work: Promise<unknown>): void {
    this.#work ??= new Set();
    const all = this.#work.add(work);
    void work.finally(() => all.delete(work));
  }

  /** Resolves when all of it has stopped, and `also`, or after so many milliseconds; 0 for never. */
  async stopped(milliseconds: number, also: () => Promise<void> | undefined): Promise<void> {
    const stopped = this.#stopped(also);
    await (milliseconds > 0 ? within(milliseconds, stopped) : stopped).catch(() => undefined);
  }

  // In a loop: work that stops may begin other work.
  async #stopped(also: () => Promise<void> | undefined): Promise<void> {
    await also();
    while (this.#work !== undefined && this.#work.size > 0) {
      await Promise.allSettled(this.#work);
      await also();
    }
  }
}
