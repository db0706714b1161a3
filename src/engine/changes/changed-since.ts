import type { RunLists, StatusFilter } from '../../core/ports/run-lists.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import { pages } from '../store/pages.ts';

/** Reads a page of runs by the time of their status: see `Store`. */
export type ReadByStatusTime = RunLists['runsByStatusTime'];

/** Milliseconds by which the clocks of two nodes may differ. */
export const maxClockSkew = 10_000;
/** Runs that one read asks the store for. */
const page = 500;
/** Runs after which the search ends, so that its cost is limited. */
const maxRuns = 10_000;

/**
 * The runs that match a filter and have got their status at or after a time, in pages, the newest first. A run that
 * changes meanwhile may be missing, as it moves to a page before. The last page is `too many` where there are more.
 */
export async function* changedSince(
  read: ReadByStatusTime,
  filter: StatusFilter,
): AsyncGenerator<readonly RunRow[] | 'too many', void, undefined> {
  let left = maxRuns;
  for await (const rows of pages<RunRow>(page, (after) => read(filter, after, page))) {
    yield rows;
    left -= page;
    if (left <= 0 && rows.length === page) return yield 'too many';
  }
}
