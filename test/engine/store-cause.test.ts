import { of } from 'rxjs';
import { expect, it } from 'vitest';
import type { Outcome, Write } from '../../src/core/store.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { agent } from '../support/agents.ts';
import { Lines } from '../support/lines.ts';
import { ask, finished, serveApi } from '../support/serve.ts';

const cause = 'SQLITE_FULL: /var/secret/rivulet.db';
const isOdd = ({ lines }: Write): boolean => lines.some((line) => line.includes('unkeepable'));

/** Rejects the writes with one word. */
class Picky extends MemoryStore {
  override async commit(writes: readonly Write[]): Promise<Outcome[]> {
    const kept = await super.commit(writes.filter((write) => !isOdd(write)));
    return writes.map((write) => (isOdd(write) ? { rejected: new Error(cause) } : (kept.shift() ?? 'fenced')));
  }
}

/** Fails as long as there is such a write. */
class Failing extends MemoryStore {
  override async commit(writes: readonly Write[]): Promise<Outcome[]> {
    if (writes.some(isOdd)) throw new Error(cause);
    return super.commit(writes);
  }
}

it.each([
  ['rejects', new Picky()],
  ['does not take in time', new Failing()],
])('the cause of a write that the store %s is in the log, once, with the id of its run', async (_, store) => {
  const lines = new Lines();
  const served = await serveApi([agent('odd', () => of('unkeepable'))], {
    store,
    logger: { level: 'info', stream: lines.stream },
    limits: { sweepInterval: 5, storeTimeout: 50 },
  });
  const { run_id } = await (await served.post('/runs', ask('odd', 'hi', { mode: 'async' }))).json();
  const run = await finished(served, run_id);
  expect(run.status).toBe('failed');
  expect(JSON.stringify(run)).not.toContain('secret');
  const text = `stopped, as the store did not take its events: ${cause}`;
  await lines.find(({ msg }) => msg === text);
  expect(lines.all(text).map((line) => line.run_id)).toEqual([run_id]);
});
