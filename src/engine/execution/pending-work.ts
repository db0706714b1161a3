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

  /** Resolves when all of it has stopped, or after so many milliseconds; 0 for never. */
  async stopped(milliseconds: number): Promise<void> {
    if (this.#work === undefined || this.#work.size === 0) return;
    const stopped = Promise.all(this.#work);
    await (milliseconds > 0 ? within(milliseconds, stopped) : stopped).catch(() => undefined);
  }
}
