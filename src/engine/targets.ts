import { fail } from '../core/errors.ts';
import { encodeTargets, type PushTarget, targetsOf } from '../core/push-targets.ts';
import type { Store } from '../core/store.ts';

/** Attempts to change the targets of a run, while other requests change them. */
const maxAttempts = 20;

/**
 * Changes the targets of a run, whichever node executes it: that node learns of them with its next change of status.
 * @throws RivuletError `run_unknown`, `conflict`, `store_unavailable`, and what `change` throws
 */
export async function changeTargets(
  store: Store,
  run_id: string,
  change: (targets: readonly PushTarget[]) => readonly PushTarget[],
): Promise<void> {
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const row = await store.run(run_id);
    if (row === undefined) throw fail('run_unknown', run_id);
    const targets = encodeTargets(change(targetsOf(row)));
    if (targets === row.targets || (await store.setTargets(run_id, row.targets, targets))) return;
  }
  throw fail('conflict', run_id);
}
