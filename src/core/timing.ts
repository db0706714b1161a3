const same = (error: unknown): unknown => error;

/**
 * Passes on a promise's result, or its error as `errorOf` makes it: by default, as it is.
 * @throws Error where the promise is not settled within so many milliseconds, as `errorOf` makes it
 */
export function within<T>(milliseconds: number, promise: Promise<T>, errorOf = same): Promise<T> {
  // One promise and one timer, because every request waits here; `Promise.race` would take six promises.
  return new Promise((resolve, reject) => {
    const late = (): void => reject(errorOf(new Error(`no answer for ${milliseconds / 1_000} s`)));
    const timer = setTimeout(late, milliseconds);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(errorOf(error));
      },
    );
  });
}

/** A pause that can be ended early; one at a time. */
export class Delay {
  #end: (() => void) | undefined;
  #closed = false;

  get closed(): boolean {
    return this.#closed;
  }

  /** Resolves after so many milliseconds, or when the pause is ended. */
  wait(milliseconds: number): Promise<void> {
    if (this.#closed) return Promise.resolve();
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

  /** Ends this pause, and all later ones at once. */
  close(): void {
    this.#closed = true;
    this.end();
  }
}

/** Milliseconds before the next attempt, after so many failures: short at first, as a restarted server is back soon. */
export const backoff = (failures: number, first = 50, most = 1_000): number =>
  Math.min(first * 2 ** (failures - 1), most);

/** Milliseconds after which a turn of the event loop is long. */
const longTurn = 5;

/** When the first call of `giveWay` came in this turn of the event loop; undefined before. */
let turnBegan: number | undefined;

const endTurn = (): void => {
  turnBegan = undefined;
};

/**
 * Gives way to other work of the process: where a turn of the event loop is long, returns a promise that resolves in the
 * next one. Otherwise returns undefined. Code that may run many times in one turn calls it each time. All such code
 * shares the turn, so that several loops together are no longer than one.
 */
export function giveWay(): Promise<void> | undefined {
  if (turnBegan === undefined) {
    turnBegan = performance.now();
    setImmediate(endTurn);
    return undefined;
  }
  return performance.now() - turnBegan < longTurn ? undefined : new Promise((resolve) => setImmediate(resolve));
}

export interface RetryOptions {
  /** Whether another attempt may succeed after this error. Default: after any. */
  readonly again?: (error: unknown) => boolean;
  /** To end the pauses early. When it is closed, the error of the last attempt is final. */
  readonly delay?: Delay;
}

/** Repeats work that fails, after growing pauses. The work calls `progress` to begin with the shortest pause again. */
export async function retry<T>(
  work: (progress: () => void) => Promise<T>,
  { again = () => true, delay = new Delay() }: RetryOptions = {},
): Promise<T> {
  let failures = 0;
  const progress = (): void => {
    failures = 0;
  };
  for (;;) {
    try {
      return await work(progress);
    } catch (error) {
      if (!again(error)) throw error;
      failures += 1;
      await delay.wait(backoff(failures));
      if (delay.closed) throw error;
    }
  }
}
