/**
 * Repeats work at an interval, never twice at once. A failure does not stop it; `onFailure` receives the first of
 * several in a row. An interval of 0 means never.
 */
export class PeriodicTask {
  readonly #period: number;
  readonly #work: () => Promise<void>;
  readonly #onFailure: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> | undefined;
  #failing = false;

  constructor(period: number, work: () => Promise<void>, onFailure: (error: unknown) => void) {
    this.#period = period;
    this.#work = work;
    this.#onFailure = onFailure;
  }

  get running(): boolean {
    return this.#timer !== undefined;
  }

  start(): void {
    if (this.#period <= 0 || this.#timer !== undefined) return;
    this.#timer = setInterval(() => {
      this.#working ??= this.#once();
    }, this.#period);
    this.#timer.unref();
  }

  /** Resolves when no work is in progress. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#working;
  }

  async #once(): Promise<void> {
    try {
      await this.#work();
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) this.#onFailure(error);
      this.#failing = true;
    } finally {
      this.#working = undefined;
    }
  }
}
