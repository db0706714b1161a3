import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { RunRow } from '../../src/core/ports/run-store.ts';
import { Registry } from '../../src/engine/agents/registry.ts';
import { RunChanges } from '../../src/engine/changes/run-changes.ts';
import { defaultLimits } from '../../src/engine/limits.ts';
import { Offers } from '../../src/engine/runs/offers.ts';
import { Retention } from '../../src/engine/runs/retention.ts';
import { Followed } from '../../src/engine/store/followed.ts';
import { append, end, fresh } from '../stores/writes.ts';
import { echo, never } from '../support/agents.ts';
import { nodes } from '../support/nodes.ts';
import { PartedStore } from '../support/parted-store.ts';
import { ask } from '../support/serve.ts';
import { commitsOf, queueOf } from '../support/session-queue.ts';
import { turn } from '../support/turn.ts';

const old = '2026-01-01T00:00:00.000Z';
const away = 'connect ECONNREFUSED';
const limits = { lease: 10, pollInterval: 10, sweepInterval: 10, storeTimeout: 10 };

/** The ids of a session in each part. */
const sessions = ['session-0000', 'session-0001'] as const;

/** Stores a run in each part. */
async function created(store: PartedStore, more: Partial<RunRow> = {}): Promise<[RunRow, RunRow]> {
  const writes = sessions.map((session_id) => append(fresh({ session_id, ...more }), ['{}']));
  expect(await store.commit(writes)).toEqual(['taken', 'taken']);
  const [first, second] = writes.map(({ row }) => row);
  if (first === undefined || second === undefined) throw new Error('there are no runs');
  return [first, second];
}

describe('while a part of the store is away, the other parts', () => {
  it('get the queues started that a dead node has left', async () => {
    const store = new PartedStore();
    const queued = await created(store, { queued_at: old });
    store.away = 0;
    await nodes([echo], store).node('a', { limits });
    while ((await store.run(queued[1].run_id))?.queued_at !== null) await turn();
    store.away = undefined;
    while ((await store.run(queued[0].run_id))?.queued_at !== null) await turn();
  });

  it('get their parked runs tried again by a node that starts', async () => {
    const store = new PartedStore();
    const parked = await created(store, { tier: 'durable', parked: 'it diverged', rests_at: old });
    store.away = 0;
    await nodes([{ ...echo, options: { durable: true } }], store).node('a', { limits });
    while ((await store.run(parked[1].run_id))?.parked !== null) await turn();
  });

  it('get their queues checked', async () => {
    const store = new PartedStore();
    const { queue, begun } = queueOf(store);
    const first = await created(store);
    const queued = await created(store, { queued_at: old });
    for (const session_id of sessions) await queue.add(session_id);
    await store.commit(first.map((row) => end(row, 'completed')));
    store.away = 0;
    await expect(queue.check()).rejects.toThrow(away);
    expect(begun).toEqual([queued[1].run_id]);
  });

  it('lose the runs that an owner keeps for a shorter time', async () => {
    const store = new PartedStore();
    const runs = await created(store, { owner: 'key:alice' });
    await store.commit(runs.map((row) => end(row, 'completed')));
    const kept = { ...defaultLimits, runTtl: 0 };
    const retention = new Retention(store, new Registry([]), kept, { 'key:alice': 1 });
    store.away = 0;
    await expect(retention.sweep(Date.now() + 1_000, () => true)).rejects.toThrow(away);
    store.away = undefined;
    expect((await store.runs({}, undefined, 10)).map(({ run_id }) => run_id)).toEqual([runs[0].run_id]);
  });

  it('get their idle runs checked, however many the part that is away has', async () => {
    const store = new PartedStore();
    const served = await nodes([never], store).node('a', { limits: { ...limits, lease: 60_000 } });
    const start = async (session: string): Promise<string> => {
      const session_id = `66666666-6666-4666-8666-66666666${session}`;
      const body = ask('never', 'hi', { session_id, mode: 'async' });
      const { run_id } = await (await served.post('/runs', body)).json();
      while ((await store.run(run_id))?.status !== 'in-progress') await turn();
      return run_id;
    };
    for (let n = 0; n < 20; n += 1) await start('0000');
    const idle = await start('0001');
    store.away = 0;
    // What the node has begun before the part was away.
    for (let turns = 0; turns < 20; turns += 1) await turn();
    store.read.clear();
    while (!store.read.has(idle)) await turn();
    store.away = undefined;
  });

  it('get their runs offered again that the store has failed before', async () => {
    const store = new PartedStore();
    const commits = commitsOf(store);
    const offered: string[] = [];
    const dispatcher = { shared: true, offer: (run_ids: readonly string[]) => offered.push(...run_ids) };
    const offers = new Offers(dispatcher as never, { stopping: false } as never, commits);
    const runs = await created(store);
    for (const { run_id } of runs) offers.postpone(run_id);
    vi.spyOn(commits.of(runs[0].run_id), 'failing', 'get').mockReturnValue(true);
    offers.repeat();
    expect(offered).toEqual([runs[1].run_id]);
    vi.restoreAllMocks();
    offers.repeat();
    expect(offered).toEqual([runs[1].run_id, runs[0].run_id]);
  });

  it('report their changes whose notifications were missed', async () => {
    const store = new PartedStore();
    const changes = new RunChanges(store, {
      limits: defaultLimits,
      shared: true,
      followed: new Followed(),
      now: () => new Date().toISOString(),
      onFailure: () => undefined,
    });
    onTestFinished(() => changes.stop());
    const heard: string[] = [];
    const reader = await changes.open({}, { limit: 20 });
    const reading = (async () => {
      for await (const events of reader) for (const { data } of events) heard.push(data);
    })();
    store.away = 0;
    const status_at = new Date().toISOString();
    const row = fresh({ session_id: sessions[1], status_at, snapshot: 1 });
    await store.commit([append(row, ['{}'])]);
    changes.onNotifications(undefined);
    while (!heard.some((data) => data.includes(row.run_id))) await turn();
    reader.close();
    await reading;
  });

  it('get all new sessions', async () => {
    const store = new PartedStore();
    const served = await nodes([never], store).node('a', { limits });
    store.away = 0;
    for (let n = 0; n < 20; n += 1) {
      const answer = await served.post('/runs', ask('never', 'hi', { mode: 'async' }));
      expect(answer.status).toBe(202);
      expect(store.partitions.of((await answer.json()).run_id)).toBe(1);
    }
  });
});
