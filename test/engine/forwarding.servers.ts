import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { limits, OwnerNode, ownedAgents } from '../support/owner-node.ts';
import { ask, finished, serveApi } from '../support/serve.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { awaitingOn, give, repliesIn, taken } from '../support/takeovers.ts';

for (const [kind, place] of Object.entries({ Redis: await redisPlace(), PostgreSQL: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`a node that executes no runs, with ${kind},`, () => {
    afterAll(() => place?.remove());
    const { url = '' } = place ?? {};
    const front = () =>
      serveApi(
        ownedAgents(() => {}),
        { store: url, worker: false, limits },
      );
    const owner = async (): Promise<OwnerNode> => {
      const node = await OwnerNode.start(url);
      onTestFinished(() => node.kill());
      return node;
    };

    it('forwards a reply to the node that executes the run, or to the next one where that dies', async () => {
      const [served, first] = [await front(), await owner()];
      const run_id = await awaitingOn(served);
      await first.said(`work of ${run_id}`);
      expect(await give(served, run_id, 'yes')).toEqual(taken);
      expect(await repliesIn(served, run_id)).toEqual(['yes']);
      const other = await awaitingOn(served);
      await first.said(`work of ${other}`);
      expect(first.lines).toEqual(['ready', `work of ${run_id}`, `work of ${other}`]);
      first.pause();
      const key = { 'idempotency-key': 'key' };
      expect(await give(served, other, 'yes', key)).toEqual([503, 'node_unresponsive']);
      first.kill();
      const second = await owner();
      await second.said(`work of ${other}`);
      await expect.poll(() => repliesIn(served, other)).toEqual(['yes']);
      expect(await give(served, other, 'yes', key)).toEqual(taken);
      for (const id of [run_id, other]) await served.post(`/runs/${id}/cancel`);
    });

    it('has the node that executes a run cancel it, or ends it when the lease of that node is gone', async () => {
      const [served, first] = [await front(), await owner()];
      const session_id = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
      const begin = async (text: string): Promise<string> => {
        const request = ask('works', text, { session_id, mode: 'async' });
        return (await (await served.post('/runs', request, { 'if-busy': 'enqueue' })).json()).run_id;
      };
      const cancel = async (run_id: string) => (await (await served.post(`/runs/${run_id}/cancel`)).json()).status;
      const statusOf = async (run_id: string) => (await (await served.get(`/runs/${run_id}`)).json()).status;
      const run_id = await begin('first');
      await first.said(`begin of ${run_id}`);
      const next = await begin('next');
      expect(await cancel(run_id)).toBe('cancelling');
      expect((await finished(served, run_id)).status).toBe('cancelled');
      expect((await finished(served, next)).status).toBe('completed');
      const lines = ['ready', `begin of ${run_id}`, `end of ${run_id}`, `begin of ${next}`];
      expect(first.lines).toEqual(lines);
      const other = await begin('first');
      await first.said(`begin of ${other}`);
      const last = await begin('next');
      first.pause();
      expect(await cancel(other)).toBe('cancelling');
      expect([await statusOf(other), await statusOf(last)]).toEqual(['cancelling', 'created']);
      first.kill();
      const second = await owner();
      expect((await finished(served, other)).status).toBe('cancelled');
      expect((await finished(served, last)).status).toBe('completed');
      expect(second.lines.at(-1)).toBe(`begin of ${last}`);
    });
  });
}
