import type { Quotas } from '../core/ports/quotas.ts';
import type { Store } from '../core/ports/store.ts';
import { openQuotas } from '../quotas/open.ts';
import { openStore } from '../stores/open.ts';

/** What the nodes of a service share. */
export interface Backend {
  readonly store: Store;
  /** The counters of owners. Default: of this process. */
  readonly quotas?: Quotas;
}

/** Told of settings of the database that may lose data, and of errors of its connections. */
export type OnWarning = (text: string, error?: unknown) => void;

/**
 * Opens the store that a URL names, and the counters beside it. The caller closes the store; the runtime or server that is
 * given the counters closes them.
 * @throws Error that says what is wrong with the URL, or why the store cannot be opened
 */
export async function openBackend(
  url: string,
  { onWarning = () => {} }: { onWarning?: OnWarning } = {},
): Promise<Backend> {
  const store = await openStore(url, onWarning);
  try {
    return {
      store,
      quotas: await openQuotas(url, (error) => onWarning('the counters beside the store failed', error)),
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The store and the counters that options name, opened where they are a URL. @throws as `openBackend` */
export async function backendOf(
  { store = 'memory:', quotas }: Omit<Partial<Backend>, 'store'> & { readonly store?: Store | string },
  onWarning: OnWarning,
): Promise<Backend> {
  if (typeof store !== 'string') return { store, ...(quotas && { quotas }) };
  if (quotas !== undefined) return { store: await openStore(store, onWarning), quotas };
  return openBackend(store, { onWarning });
}
