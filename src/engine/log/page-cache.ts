import { fail } from '../../core/errors.ts';
import { charsOf } from '../../core/lines.ts';
import type { Batch, Store } from '../../core/store.ts';
import { SharedReads } from './shared-reads.ts';

/** Events that one read asks the store for. Each store ends its pages earlier where the events are long. */
const eventsPerPage = 1000;
/** Characters of all cached pages. */
const maxCachedChars = 8 * 1024 * 1024;

/**
 * Reads logs from the store, a page at a time. Readers at the same position share one page: without that, 500 readers
 * of one long run would keep 500 copies in memory. A cached page is never wrong, only short, because logs only grow.
 */
export class PageCache {
  readonly #store: Store;
  readonly #pages = new SharedReads<readonly Batch[]>(maxCachedChars, (page) =>
    page.reduce((sum, { lines }) => sum + charsOf(lines), 0),
  );

  constructor(store: Store) {
    this.#store = store;
  }

  /** Adds the first events of a log, which this process has written. */
  addFirst(run_id: string, lines: readonly string[]): void {
    this.#pages.keep(keyOf(run_id, 0), [{ first: 1, lines }]);
  }

  /** The batches after an event, oldest first. @throws RivuletError `log_removed` */
  after(run_id: string, after: number): Promise<readonly Batch[]> {
    return this.#pages.get(keyOf(run_id, after), () => readPage(this.#store, run_id, after));
  }
}

const keyOf = (run_id: string, after: number): string => `${run_id} ${after}`;

/** One page of the store; its first batch may begin before the cursor. @throws RivuletError `log_removed` */
export async function readPage(
  store: Store,
  run_id: string,
  after: number,
  limit = eventsPerPage,
): Promise<readonly Batch[]> {
  const page = await store.events(run_id, after, limit);
  // A removed log is cleared from its beginning, in steps, while readers may still be reading it.
  if (page[0] === undefined || page[0].first > after + 1) throw fail('log_removed', run_id);
  return page;
}
