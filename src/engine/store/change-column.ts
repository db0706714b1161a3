import { fail } from '../../core/errors.ts';
import type { RunRow, RunStore, SharedColumn } from '../../core/ports/run-store.ts';

/** Attempts to change a column, while other requests and nodes change it. */
const maxAttempts = 20;

/**
 * Changes a column of a run, whichever node executes the run. `change` returns the new value, and is called again where the
 * column was changed meanwhile. Returns false where there is no such run.
 * @throws RivuletError `conflict`, `store_unavailable`, and what `change` throws
 */
export async function changeColumn(
  store: RunStore,
  run_id: string,
  column: SharedColumn,
  change: (row: RunRow) => string | null,
): Promise<boolean> {
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const row = await store.run(run_id);
    if (row === undefined) return false;
    const after = change(row);
    if (after === row[column] || (await store.compareAndSet(run_id, column, row[column], after))) return true;
  }
  throw fail('conflict', run_id);
}
