import { fail } from '../../core/errors.ts';
import { charsOf } from '../../core/lines.ts';
import type { Batch, RunStore } from '../../core/ports/run-store.ts';
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
  readonly #store: RunStore;
  readonly #pages = new SharedReads<readonly Batch[]>(maxCachedChars, (page) =>
    page.reduce((sum, { lines }) => sum + charsOf(lines), 0),
  );

  constructor(store: RunStore) {
    this.#store = store;
  }

  /** The batches after an event, oldest first. @throws RivuletError `log_removed` */
  after(run_id: string, after: number): Promise<readonly Batch[]> {
    return this.#pages.get(`${run_id} ${after}`, () => readPage(this.#store, run_id, after));
  }
}

/** One page of the store; its first batch may begin before the cursor. @throws RivuletError `log_removed` */
export async function readPage(
  store: RunStore,
  run_id: string,
  after: number,
  limit = eventsPerPage,
): Promise<readonly Batch[]> {
  const page = await store.events(run_id, after, limit);
  // A removed log is cleared from its beginning, in steps, while readers may still be reading it.
  if (page[0] === undefined || page[0].first > after + 1) throw fail('log_removed', run_id);
  return page;
}
