import { describe, expect, it } from 'vitest';
import type { Outcome, Write } from '../../src/core/ports/run-store.ts';
import { GroupCommits } from '../../src/engine/log/group-commits.ts';
import { RunLog } from '../../src/engine/log/run-log.ts';
import { fresh, input } from '../stores/writes.ts';
import { deferred } from '../support/deferred.ts';

/** A store of two partitions, by the last digit of a run. The commits of partition 0 wait until they are released. */
function halfStore() {
  const { promise: released, resolve: release } = deferred();
  const partitions = { count: 2, of: (id: string) => Number.parseInt(id.slice(-1), 16) % 2, answers: () => true };
  const commit = async (writes: readonly Write[]): Promise<Outcome[]> => {
    const parts = new Set(writes.map(({ row }) => partitions.of(row.run_id)));
    expect(parts.size).toBeLessThanOrEqual(1);
    if (parts.has(0)) await released;
    return writes.map(() => 'taken');
  };
  return { store: { partitions, commit }, release };
}

const options = { requestTimeout: 0, storeTimeout: 60_000, onFailure: () => {} };

/** A new run whose id ends with a digit. */
const run = (digit: string) => {
  const row = fresh();
  return { ...row, run_id: row.run_id.slice(0, -1) + digit };
};

describe('the group commits of a store with partitions', () => {
  it('take the writes of one partition while another one does not answer', async () => {
    const { store, release } = halfStore();
    const commits = new GroupCommits(store, options);
    const logOf = (digit: string): RunLog => {
      const row = run(digit);
      const log = new RunLog(commits.of(row.run_id), row, { input });
      log.append('{"type":"run.created"}', { status: 'created', status_at: '', finished_at: null, due: null });
      return log;
    };
    const held = logOf('2');
    await logOf('3').flushed();
    expect(commits.of(held.run_id).available).toBe(false);
    expect(() => commits.of(held.run_id).checkAvailable()).toThrow(/does not answer/);
    // A request that concerns no run yet may be about the other partition.
    commits.checkAvailable();
    expect(commits.busy).toBe(false);
    release();
    await held.flushed();
    await commits.drained();
    expect(commits.of(held.run_id).available).toBe(true);
  });
});
