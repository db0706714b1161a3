/** Work of an agent that unsubscribing cannot stop at once: promises, generators in the middle of an await. */
export class PendingWork {
  /** Made with the first: most agents have none. */
  #work: Set<Promise<unknown>> | undefined;

  track(work: Promise<unknown>): void {
    this.#work ??= new Set();
    const all = this.#work.add(work);
    void work.finally(() => all.delete(work));
  }

  /** Resolves when all of it has stopped, or the time is over, in milliseconds. */
  async stopped(deadline: number): Promise<void> {
    if (this.#work === undefined || this.#work.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, deadline);
    });
    await Promise.race([Promise.all(this.#work), over]);
    clearTimeout(timer);
  }
}
