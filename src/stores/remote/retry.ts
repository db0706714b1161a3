/** Milliseconds before the next attempt: short at first, because a restarting server is back soon. */
export const backoff = (attempts: number): number => Math.min(50 * 2 ** attempts, 1_000);

/** A delay that can be ended early; one at a time. */
export class Delay {
  #end: (() => void) | undefined;

  wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(end, milliseconds);
      this.#end = end;
    });
  }

  end(): void {
    this.#end?.();
  }
}
