import { afterAll, describe, expect, it } from 'vitest';
import type { Run } from '../../src/index.ts';
import { askOnce, echo } from '../support/agents.ts';
import { RunFeed } from '../support/run-feed.ts';
import { ask, type Served, serve } from '../support/serve.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';

const start = async (served: Served, name: string): Promise<Run> =>
  (await served.post('/runs', ask(name, 'hi', { mode: 'async' }))).json();

for (const [kind, place] of Object.entries({ Redis: await redisPlace(), PostgreSQL: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`the feed of runs of two nodes with ${kind}`, () => {
    afterAll(() => place?.remove());
    const node = (limits = {}) => serve([echo, askOnce], { store: place?.url ?? '', limits });

    it('shows each change on one node to the readers of the other one, by notifications alone', async () => {
      const limits = { pollInterval: 600_000 };
      const [a, b] = [await node(limits), await node(limits)];
      const [feed, inbox] = [await RunFeed.open(b.url), await RunFeed.open(b.url, '?status=awaiting')];
      await feed.ready();
      const { run_id } = await start(a, 'ask');
      await Promise.all([feed.has(run_id, 'awaiting'), inbox.has(run_id, 'awaiting')]);
      await a.post(`/runs/${run_id}`, { await_resume: { message: { parts: [{ content: 'yes' }] } }, mode: 'async' });
      await feed.has(run_id, 'completed');
      await inbox.until(() => inbox.rows.get(run_id)?.status !== 'awaiting');
    });

    it('misses no run of a reader that is cut again and again, and continues on the other node', async () => {
      const [a, b] = [await node(), await node()];
      const all = new Map<string, Run>();
      let feed = await RunFeed.open(a.url);
      await feed.ready();
      const started: string[] = [];
      let position: string | undefined;
      for (let round = 0; round < 8; round += 1) {
        // A connection may be cut before it has brought a position: the reader keeps the one before.
        position = feed.position ?? position;
        const some = Array.from({ length: 25 }, async (_, n) => (await start(n % 2 ? a : b, 'echo')).run_id);
        if (round % 2 === 0) await Promise.all(some);
        for (const [run_id, run] of feed.rows) all.set(run_id, run);
        feed.cut();
        started.push(...(await Promise.all(some)));
        feed = await RunFeed.open(round % 2 ? a.url : b.url, '', position);
      }
      await feed.until(() => {
        for (const [run_id, run] of feed.rows) all.set(run_id, run);
        return started.every((run_id) => all.get(run_id)?.status === 'completed');
      });
      expect(feed.seen.map(({ type }) => type)).not.toContain('reset');
    });
  });
}
