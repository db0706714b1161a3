import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Store } from '../../src/core/ports/store.ts';
import { ConnectedReaders } from '../../src/engine/cluster/connected-readers.ts';
import { ReaderNodes, readersOf } from '../../src/engine/cluster/reader-nodes.ts';
import { Tap } from '../support/agents.ts';
import { faulty, newPlan } from '../support/faulty-store.ts';
import { nodes } from '../support/nodes.ts';
import { ask, finished, type Served, textOf } from '../support/serve.ts';
import { turn } from '../support/turn.ts';
import { agents, countReadersOfAllNodes } from './readers-of-nodes.ts';

/** Milliseconds. */
const lease = 15_000;
const sse = { accept: 'text/event-stream' };
describe('two nodes of one store', () => {
  countReadersOfAllNodes(async () => {
    const { node, queue } = nodes(agents);
    queue.next = 'a';
    return [await node('a'), await node('b')];
  });
});

/** Resolves when the nodes know this of each other's readers. */
async function known(store: Store, run_id: string, forms: readonly string[]): Promise<void> {
  const find = async () => {
    const row = await store.run(run_id);
    return row === undefined ? [] : readersOf(row).map(({ readers }) => readers);
  };
  while (String(await find()) !== String(forms)) await turn();
}

/** A store, and a function that begins runs in it. */
async function runs(policy = 'continue') {
  const { node, queue, store } = nodes(agents);
  const a = await node('a');
  queue.next = 'a';
  const begin = async (): Promise<string> =>
    (await (await a.post('/runs', ask('never', 'x', { mode: 'async' }), { 'on-disconnect': policy })).json()).run_id;
  return { store, begin };
}

it('a run of which a reader has died with its node goes on for two leases without readers, and ends as usual', async () => {
  const tap = new Tap();
  const { node, queue, store } = nodes([tap.agent]);
  const plan = newPlan();
  const [a, dies] = [await node('a'), await node('dies', { store: faulty(store, plan) })];
  queue.next = 'a';
  const policy = { 'on-disconnect': 'cancel' };
  const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }), policy)).json();
  await tap.started();
  const nodesWithReaders = (count: number) => known(store, run_id, Array(count).fill('connected'));
  const read = async ({ get }: Served) => (await get(`/runs/${run_id}/events`, sse)).body;
  const lost = await read(dies);
  await nodesWithReaders(1);
  const last = await read(a);
  await nodesWithReaders(2);
  // The node that died writes no more.
  plan.faults.compareAndSet = { fails: 1, times: Number.POSITIVE_INFINITY };
  const { compareAndSet: calls = 0 } = plan.calls;
  await lost?.cancel();
  while (plan.calls.compareAndSet === calls) await turn();
  await last?.cancel();
  await nodesWithReaders(1);
  expect((await (await a.get(`/runs/${run_id}`)).json()).status).toBe('in-progress');
  tap.push('done');
  tap.complete();
  const run = await finished(a, run_id);
  expect([run.status, textOf(run)]).toEqual(['completed', 'done']);
});

it('a run goes on whose client has come back to another node, and has read its response to the end there', async () => {
  const { store, begin } = await runs();
  const [run_id, left] = [await begin(), await begin()];
  const cancelled: string[] = [];
  const readers = () => new ConnectedReaders(new ReaderNodes(store, lease), (cancel) => void cancelled.push(cancel));
  const [one, other] = [readers(), readers()];
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const policy = 'grace=2';
  for (const id of [run_id, left]) {
    const leave = one.connect(id, policy, true);
    await known(store, id, ['connected']);
    leave(true);
    await known(store, id, ['disconnected']);
  }
  const leave = other.connect(run_id, policy, true);
  await known(store, run_id, ['connected']);
  leave(false);
  await known(store, run_id, []);
  // Both times of grace end, the one of this run first.
  vi.advanceTimersByTime(2_000);
  while (cancelled.length === 0) await turn();
  expect(cancelled).toEqual([left]);
});

it('a run is cancelled after its grace, also where the store took neither its reader nor the disconnect', async () => {
  const { store, begin } = await runs();
  const run_id = await begin();
  const plan = newPlan();
  plan.faults.compareAndSet = { fails: 1, times: 2 };
  const cancelled = new Promise<string>((cancel) => {
    const readers = new ConnectedReaders(new ReaderNodes(faulty(store, plan), lease), cancel);
    readers.connect(run_id, 'grace=0.1', true)(true);
  });
  expect(await cancelled).toBe(run_id);
  expect(plan.calls.compareAndSet).toBe(2);
});

describe('a run whose readers were at a node that has died', () => {
  it('is cancelled where no client has come back, and not while the node renews what it knows', async () => {
    // In the past: the ends of these runs make ids, which never go back.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 10 * lease });
    onTestFinished(() => void vi.useRealTimers());
    const { store, begin } = await runs('grace=5');
    const [lost, back] = [await begin(), await begin()];
    const cancelled: string[] = [];
    const readers = () => new ConnectedReaders(new ReaderNodes(store, lease), (cancel) => void cancelled.push(cancel));
    const [dies, other, third] = [readers(), readers(), readers()];
    const check = async (): Promise<void> => {
      for (const run_id of [lost, back]) {
        const row = await store.run(run_id);
        if (row !== undefined) await third.check(row);
      }
    };
    const untilOf = async (run_id: string): Promise<string | undefined> => {
      const row = await store.run(run_id);
      return row && readersOf(row)[0]?.until;
    };
    for (const run_id of [lost, back]) {
      dies.connect(run_id, 'grace=5', true);
      await known(store, run_id, ['connected']);
    }
    vi.advanceTimersByTime(2 * lease);
    const before = await untilOf(back);
    dies.renew();
    while ((await untilOf(lost)) === before || (await untilOf(back)) === before) await turn();
    vi.advanceTimersByTime(2 * lease + 5_000);
    await check();
    expect(cancelled).toEqual([]);
    // The client of one of them comes back, and then disconnects.
    other.connect(back, 'grace=5', true)(true);
    await known(store, back, ['connected']);
    vi.advanceTimersByTime(1);
    await check();
    expect(cancelled).toEqual([lost]);
    await known(store, lost, []);
  });

  it('is cancelled by the other nodes', async () => {
    const { node, queue, store } = nodes(agents);
    const plan = newPlan();
    const limits = { lease: 50 };
    const a = await node('a', { limits });
    const dies = await node('dies', { limits, store: faulty(store, plan) });
    queue.next = 'a';
    const policy = { 'on-disconnect': 'cancel' };
    const { run_id } = await (await a.post('/runs', ask('never', 'x', { mode: 'async' }), policy)).json();
    await dies.get(`/runs/${run_id}/events`, sse);
    await known(store, run_id, ['connected']);
    plan.faults.compareAndSet = { fails: 1, times: Number.POSITIVE_INFINITY };
    await expect.poll(async () => (await store.run(run_id))?.status).toBe('cancelled');
  });
});
