import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { PostgresQueueBackend, RedisQueueBackend } from 'bullmq';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { TestNode } from './test-node.ts';

const hold = resolve(import.meta.dirname, 'hold-runs.ts');
const lease = 1_500;
const hour = 3_600_000;

/** Sets the clock of this process, and of no other one, until the end of the test. Returns a function that resets it. */
function setClock(ahead: number): () => void {
  const now = Date.now.bind(Date);
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + ahead);
  const reset = (): void => clock.mockRestore();
  onTestFinished(reset);
  return reset;
}

/** A process with the right time, which takes runs. */
function holder(url: string) {
  const child = spawn(process.execPath, ['--import', 'tsx', hold, url, String(lease)]);
  onTestFinished(() => void child.kill('SIGKILL'));
  let printed = '';
  child.stdout.on('data', (text) => {
    printed += text;
  });
  const has = (run_id: string): boolean => printed.includes(run_id);
  const taken = (run_id: string): Promise<void> =>
    vi.waitFor(() => expect(has(run_id)).toBe(true), { timeout: 15_000 });
  return { child, has, taken };
}

for (const [kind, place] of Object.entries({ Redis: await redisPlace(), PostgreSQL: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`runs that are dispatched through ${kind} to nodes whose clocks differ`, () => {
    afterAll(() => place?.remove());
    const { url = '' } = place ?? {};
    const backend = kind === 'Redis' ? RedisQueueBackend.prototype : PostgresQueueBackend.prototype;

    /** Resolves after so many renewals of leases by this process. */
    const renewals = async (count: number): Promise<void> => {
      const renew = vi.spyOn(backend, 'extendLocks');
      onTestFinished(() => renew.mockRestore());
      await vi.waitFor(() => expect(renew.mock.settledResults.length).toBeGreaterThanOrEqual(count), {
        timeout: 15_000,
      });
    };

    it('stay with a node whose clock is set back', async () => {
      const one = await TestNode.open(url, { lease });
      const id = randomUUID();
      await one.offer(id);
      await one.taken(id);
      await one.dispatcher.pause();
      const other = await TestNode.open(url, { lease });
      setClock(-hour);
      await renewals(18);
      expect(other.runs).toEqual([]);
    });

    it('stay with a node whose clock is behind', async () => {
      const reset = setClock(-hour);
      const behind = await TestNode.open(url, { lease });
      const id = randomUUID();
      await behind.offer(id);
      const held = await behind.taken(id);
      const other = holder(url);
      // The other node is at work.
      const next = randomUUID();
      await behind.dispatcher.pause();
      await behind.offer(next);
      await other.taken(next);
      await renewals(18);
      expect(other.has(id)).toBe(false);
      held.end();
      await behind.isSettled(id);
      reset();
    });

    it('leave a node that is killed, also after a node whose clock was ahead has looked for such runs', async () => {
      const reset = setClock(hour);
      const look = vi.spyOn(backend, 'moveStalledJobsToWait');
      onTestFinished(() => look.mockRestore());
      const ahead = await TestNode.open(url, { lease });
      await vi.waitFor(() => expect(look.mock.settledResults.length).toBeGreaterThan(0), { timeout: 15_000 });
      await ahead.close();
      reset();
      const killed = holder(url);
      const id = randomUUID();
      const giver = await TestNode.open(url, { lease });
      await giver.dispatcher.pause();
      await giver.offer(id);
      await killed.taken(id);
      killed.child.kill('SIGKILL');
      const heir = await TestNode.open(url, { lease });
      await heir.taken(id);
    });

    it('are looked for at the usual interval after an error of the connection', async () => {
      const wait = vi.spyOn(backend, 'waitForJob').mockRejectedValueOnce(new Error('lost'));
      onTestFinished(() => wait.mockRestore());
      const node = await TestNode.open(url, { lease });
      await vi.waitFor(() => expect(wait.mock.calls.length).toBeGreaterThan(1), { timeout: 15_000 });
      expect(Math.max(...wait.mock.calls.map(([seconds]) => seconds))).toBeLessThanOrEqual(5);
      await node.close();
    });
  });
}
