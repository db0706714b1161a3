import type { RunRow, Store } from '../../core/store.ts';

/** What the search reads. */
export type ChangedRuns = Pick<Store, 'unfinished' | 'ended'>;

/** Milliseconds by which the clocks of two nodes may differ. */
export const maxClockSkew = 10_000;
/** Runs that one read asks the store for. */
const page = 500;
/** Runs after which the search ends, so that its cost is limited. */
const maxRuns = 10_000;

/**
 * The runs whose status may have changed since a time, in pages: those that are not final, of one session or of all,
 * then those that ended since, of all sessions. A run that ends meanwhile is in the second list. The last page is
 * `too many` where there are more.
 */
export async function* changedSince(
  store: ChangedRuns,
  since: string,
  session_id?: string,
): AsyncGenerator<readonly RunRow[] | 'too many', void, undefined> {
  let left = maxRuns;
  for (const list of [unfinished(store, session_id), endedSince(store, since)]) {
    for await (const rows of list) {
      yield rows;
      left -= rows.length;
      if (rows !== 'too many' && left > 0) continue;
      if (rows !== 'too many') yield 'too many';
      return;
    }
  }
}

async function* unfinished(
  store: ChangedRuns,
  session_id?: string,
): AsyncGenerator<readonly RunRow[], void, undefined> {
  for (let after = ''; ; ) {
    const rows = await store.unfinished(session_id, after, page);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = last.run_id;
  }
}

async function* endedSince(
  store: ChangedRuns,
  since: string,
): AsyncGenerator<readonly RunRow[] | 'too many', void, undefined> {
  /** The runs that ended at `since`, with which the next page begins. */
  let seen = new Set<string>();
  for (let from = since; ; ) {
    const rows = await store.ended(from, page);
    const fresh = rows.filter(({ run_id }) => !seen.has(run_id));
    const end = fresh.at(-1)?.finished_at ?? undefined;
    // A page of runs that ended in one millisecond hides the runs behind it.
    if (end === undefined) return rows.length < page ? undefined : yield 'too many';
    yield fresh;
    from = end;
    seen = new Set(rows.filter(({ finished_at }) => finished_at === end).map(({ run_id }) => run_id));
  }
}
