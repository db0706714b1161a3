import { Observable } from 'rxjs';

const same = (error: unknown): unknown => error;

/** The error of `within` where the time is over. */
export class TooLate extends Error {
  constructor(milliseconds: number) {
    super(`no answer for ${milliseconds / 1_000} s`);
  }
}

/**
 * Passes on a promise's result, or its error as `errorOf` makes it: by default, as it is.
 * @throws Error where the promise is not settled within so many milliseconds, as `errorOf` makes it
 */
export function within<T>(milliseconds: number, promise: Promise<T>, errorOf = same): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = (): void => reject(errorOf(new TooLate(milliseconds)));
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

/** What is called when an outer signal fires, and the listener that does. One for all: Node 20 warns of the eleventh. */
interface Links {
  readonly ends: Set<() => void>;
  readonly listener: () => void;
}

const linksTo = new WeakMap<AbortSignal, Links>();

function listen(outer: AbortSignal): Links {
  const ends = new Set<() => void>();
  const listener = (): void => {
    for (const end of ends) end();
  };
  outer.addEventListener('abort', listener);
  const links = { ends, listener };
  linksTo.set(outer, links);
  return links;
}

/** A signal that can be fired, and also fires with an outer one until it is unlinked. */
export interface Linked {
  readonly signal: AbortSignal;
  readonly abort: (reason?: unknown) => void;
  readonly unlink: () => void;
}

/**
 * Links a new signal to an outer one that may outlive many of them. `unlink` leaves nothing with the outer signal: on
 * Node 20, `AbortSignal.any` leaves an entry there for good.
 */
export function linked(outer: AbortSignal | undefined): Linked {
  const ended = new AbortController();
  const { signal } = ended;
  const abort = (reason?: unknown): void => ended.abort(reason);
  if (outer === undefined) return { signal, abort, unlink: () => {} };
  const { ends, listener } = linksTo.get(outer) ?? listen(outer);
  const end = (): void => abort(outer.reason);
  ends.add(end);
  if (outer.aborted) end();
  const unlink = (): void => {
    if (!ends.delete(end) || ends.size > 0) return;
    outer.removeEventListener('abort', listener);
    linksTo.delete(outer);
  };
  return { signal, abort, unlink };
}

/** Does work with a signal that fires after so many milliseconds, or when `outer` fires. */
export async function withDeadline<T>(
  milliseconds: number,
  work: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  const { signal, abort, unlink } = linked(outer);
  const timer = setTimeout(() => abort(new TooLate(milliseconds)), milliseconds);
  try {
    return await work(signal);
  } finally {
    clearTimeout(timer);
    unlink();
  }
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

/** Milliseconds between two looks at the clock, which may be set, or stand still while the machine sleeps. */
const longestWait = 60_000;

/** Completes at a time: milliseconds since 1970, as `now` has them. */
export const sleepUntil = (until: number, now: () => number): Observable<never> =>
  new Observable((subscriber) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const wait = (): void => {
      const left = until - now();
      if (left <= 0) subscriber.complete();
      else timer = setTimeout(wait, Math.min(left, longestWait));
    };
    wait();
    return () => clearTimeout(timer);
  });

/** Milliseconds before the next attempt, after so many failures: short at first, as a restarted server is back soon. */
export const backoff = (failures: number, first = 50, most = 1_000): number =>
  Math.min(first * 2 ** (failures - 1), most);

/** A pause that is up to half as long again, by chance, so that not all come back to one server at the same moment. */
export const spread = (milliseconds: number): number => milliseconds * (1 + Math.random() / 2);

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
  /** Milliseconds of the first pause and of the longest one: see `backoff`. */
  readonly first?: number;
  readonly most?: number;
}

/** Repeats work that fails, after growing pauses. The work calls `progress` to begin with the shortest pause again. */
export async function retry<T>(
  work: (progress: () => void) => Promise<T>,
  { again = () => true, delay = new Delay(), first, most }: RetryOptions = {},
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
      await delay.wait(backoff(failures, first, most));
      if (delay.closed) throw error;
    }
  }
}
