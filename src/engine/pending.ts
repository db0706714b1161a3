/** Work of an agent that unsubscribing cannot stop at once: promises, generators in the middle of an await. */
export class Pending {
  readonly #work = new Set<Promise<unknown>>();

  track(work: Promise<unknown>): void {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }

  /** Resolves when all of it has stopped, or the time is over, in milliseconds. */
  async settled(deadline: number): Promise<void> {
    if (this.#work.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, deadline);
    });
    await Promise.race([Promise.all(this.#work), over]);
    clearTimeout(timer);
  }
}
