/** How long to wait before a try, in milliseconds: a server that starts is found soon, one that is gone is left alone. */
export const backoff = (tries: number): number => Math.min(50 * 2 ** tries, 1_000);

/** Whether the system or the network has failed, as opposed to the server, which would have answered. */
export function networkFailed(error: unknown): boolean {
  // A name with several addresses, none of which answers.
  if (error instanceof AggregateError) return error.errors.some(networkFailed);
  if (!(error instanceof Error) || !('code' in error)) return false;
  // ECONNREFUSED, EAI_AGAIN and so on; what begins with ERR_ is a mistake in a program.
  return /^E(?!RR_)[A-Z0-9_]+$/.test(String(error.code));
}

/** One wait at a time, which can be ended early. */
export class Pause {
  #end: (() => void) | undefined;

  of(milliseconds: number): Promise<void> {
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

/** Waits for something to be done, but no longer than that. */
export async function within(milliseconds: number, done: Promise<unknown>): Promise<void> {
  const pause = new Pause();
  await Promise.race([done, pause.of(milliseconds)]).finally(() => pause.end());
}
