import { setTimeout as delay } from 'node:timers/promises';
import { fail, RivuletError } from '../core/errors.ts';
import type { Store } from '../core/store.ts';
import { within as inTime } from '../core/within.ts';

/**
 * A store over a network, as requests use it: where it does not answer, or not for so many milliseconds, that is told
 * as `store_away`. A client is then asked to come again, and an open stream waits. A commit that was given up may be
 * taken all the same, later.
 */
export function reachable(store: Store, patience: number): Store {
  return asking(store, (ask) => within(ask(), patience));
}

/** Milliseconds between two questions to a store that is away. */
const pause = 500;
/** Milliseconds after which it is no use to ask again; a silent agent is ended before, by default. */
const longest = 3_600_000;

/** A store over a network, as agents use it: what they ask while it is away is asked again until it is back. */
export function patient(store: Store): Store {
  return asking(store, async (ask) => {
    for (const until = performance.now() + longest; ; ) {
      try {
        return await ask();
      } catch (error) {
        if (performance.now() > until) throw error;
        await delay(pause, undefined, { ref: false });
      }
    }
  });
}

function asking(store: Store, how: (ask: () => Promise<unknown>) => Promise<unknown>): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const asks = name !== 'close' && name !== 'watch';
      return (...args: unknown[]): unknown => {
        const ask = async (): Promise<unknown> => Reflect.apply(value, target, args);
        return asks ? how(ask) : ask();
      };
    },
  });
}

/** What a promise answers, or `store_away` when it rejects with an error that is not ours, or the time is over. */
export async function within<T>(answer: Promise<T>, patience: number): Promise<T> {
  try {
    return await inTime(patience, answer);
  } catch (cause) {
    if (cause instanceof RivuletError) throw cause;
    const error = fail('store_away');
    error.cause = cause;
    throw error;
  }
}
