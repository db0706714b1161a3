import { fail, RivuletError } from '../core/errors.ts';
import type { Store } from '../core/store.ts';

/**
 * A store over a network, as requests use it: where it does not answer, or not for so many milliseconds, that is told
 * as `store_away`. A client is then asked to come again, and an open stream waits. A commit that was given up may be
 * taken all the same, later.
 */
export function reachable(store: Store, patience: number): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        const answer: unknown = Reflect.apply(value, target, args);
        if (!(answer instanceof Promise) || name === 'close' || name === 'watch') return answer;
        return within(answer, patience);
      };
    },
  });
}

/** What a promise answers, or `store_away` when it rejects with an error that is not ours, or the time is over. */
export async function within<T>(answer: Promise<T>, patience: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(fail('store_away')), patience);
  });
  try {
    return await Promise.race([answer, over]);
  } catch (cause) {
    if (cause instanceof RivuletError) throw cause;
    const error = fail('store_away');
    error.cause = cause;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
