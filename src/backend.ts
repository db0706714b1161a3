import type { Dispatcher } from './core/dispatcher.ts';
import type { Quotas } from './core/quotas.ts';
import type { Store } from './core/store.ts';
import { LocalDispatcher } from './dispatchers/local.ts';
import { openDispatcher } from './dispatchers/open.ts';
import { type Limits, parseLimits } from './engine/limits.ts';
import { openQuotas } from './quotas/open.ts';
import { openStore } from './stores/open.ts';

/** A store, and the dispatcher that belongs to it: nodes that share a store have to share the work as well. */
export interface Backend {
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  /** The counters of owners, which those nodes share as well. Default: of this process. */
  readonly quotas?: Quotas;
}

export interface BackendOptions {
  /** Those of the runtime that uses the backend: `running` and `lease` are the dispatcher's as well. */
  readonly limits?: Partial<Limits>;
  /** Told of settings of the database that may lose data, and of errors of the queue's connections. Default: none is told. */
  readonly onWarning?: (text: string, error?: unknown) => void;
}

/** The queue takes a number, not `Infinity`. */
const unlimited = 1_000_000;

/**
 * Opens the store that a URL names, and its dispatcher: within the process for `memory:` and `sqlite:PATH`, and a queue on
 * the same database for `redis://HOST` and `postgres://HOST/DATABASE`. The runtime or server that is given the dispatcher
 * closes it; the caller closes the store after that.
 * @throws Error that says what is wrong with the URL, or why the store or the queue cannot be opened
 */
export async function openBackend(url: string, { limits, onWarning }: BackendOptions = {}): Promise<Backend> {
  const { running, lease } = parseLimits(limits);
  const warn = onWarning ?? (() => {});
  const store = await openStore(url, warn);
  try {
    const onError = (error: unknown): void => warn('the queue beside the store failed', error);
    const quotas = await openQuotas(url, (error) => warn('the counters beside the store failed', error));
    return { store, dispatcher: await openDispatcher(url, { slots: running || unlimited, lease, onError }), quotas };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * The store and the dispatcher that options name, opened where they are a URL.
 * @throws Error as `openBackend`, and where a shared store comes without its dispatcher: runs would be executed here only,
 * and each start of a node would end the runs of all other nodes
 */
export async function backendOf(
  { store = 'memory:', dispatcher, quotas }: Partial<Omit<Backend, 'store'>> & { readonly store?: Store | string },
  options: BackendOptions,
): Promise<Backend> {
  if (typeof store === 'string') {
    return dispatcher === undefined
      ? openBackend(store, options)
      : { store: await openStore(store, options.onWarning), dispatcher, quotas };
  }
  if (dispatcher !== undefined) return { store, dispatcher, quotas };
  if (store.watch === undefined) return { store, dispatcher: new LocalDispatcher() };
  throw new Error(
    'this store is shared with other processes, and its dispatcher is missing; ' +
      'give its URL as `store`, or open both: `{ agents, ...(await openBackend(url)) }`',
  );
}
