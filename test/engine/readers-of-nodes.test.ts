import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { disconnectedForm, readersForm, targetsOf } from '../../src/core/push-targets.ts';
import { ConnectedReaders } from '../../src/engine/runs/connected-readers.ts';
import { ReaderNodes } from '../../src/engine/runs/reader-nodes.ts';
import { Tap } from '../support/agents.ts';
import { faulty, newPlan } from '../support/faulty-store.ts';
import { nodes } from '../support/nodes.ts';
import { ask, finished, type Served, textOf } from '../support/serve.ts';
import { turn } from '../support/turn.ts';
import { agents, countReadersOfAllNodes } from './readers-of-nodes.ts';

const sse = { accept: 'text/event-stream' };
describe('two nodes of one store', () => {
  countReadersOfAllNodes(async () => {
    const { node, queue } = nodes(agents);
    queue.next = 'a';
    return [await node('a'), await node('b')];
  });
});

it('a run of which a reader has died with its node goes on without readers, and ends as usual', async () => {
  const tap = new Tap();
  const { node, queue, store } = nodes([tap.agent]);
  const plan = newPlan();
  const [a, dies] = [await node('a'), await node('dies', { store: faulty(store, plan) })];
  queue.next = 'a';
  const policy = { 'on-disconnect': 'cancel' };
  const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }), policy)).json();
  await tap.started();
  /** Resolves when so many nodes have readers of the run. */
  const nodesWithReaders = async (count: number): Promise<void> => {
    const find = async (): Promise<number> => {
      const row = await store.run(run_id);
      return row === undefined ? 0 : targetsOf(row).filter(({ form }) => form === readersForm).length;
    };
    while ((await find()) !== count) await turn();
  };
  const read = async ({ get }: Served) => (await get(`/runs/${run_id}/events`, sse)).body;
  const lost = await read(dies);
  await nodesWithReaders(1);
  const last = await read(a);
  await nodesWithReaders(2);
  // The node that died writes no more.
  plan.faults.setTargets = { fails: 1, times: Number.POSITIVE_INFINITY };
  const { setTargets: calls = 0 } = plan.calls;
  await lost?.cancel();
  while (plan.calls.setTargets === calls) await turn();
  await last?.cancel();
  await nodesWithReaders(1);
  expect((await (await a.get(`/runs/${run_id}`)).json()).status).toBe('in-progress');
  tap.push('done');
  tap.complete();
  const run = await finished(a, run_id);
  expect([run.status, textOf(run)]).toEqual(['completed', 'done']);
});

it('a run goes on whose client has come back to another node, and has read its response to the end there', async () => {
  const tap = new Tap();
  const { node, queue, store } = nodes([tap.agent]);
  const a = await node('a');
  queue.next = 'a';
  const begin = async (): Promise<string> =>
    (await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }))).json()).run_id;
  const [run_id, left] = [await begin(), await begin()];
  const cancelled: string[] = [];
  const readers = () => new ConnectedReaders(new ReaderNodes(store), (cancel) => void cancelled.push(cancel));
  const [one, other] = [readers(), readers()];
  /** Resolves when the store has these forms of targets of a run. */
  const known = async (id: string, forms: string[]): Promise<void> => {
    const find = async () => {
      const row = await store.run(id);
      return row === undefined ? [] : targetsOf(row).map(({ form }) => form);
    };
    while (String(await find()) !== String(forms)) await turn();
  };
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const policy = 'grace=2';
  for (const id of [run_id, left]) {
    const leave = one.connect(id, policy);
    await known(id, [readersForm]);
    leave(true);
    await known(id, [disconnectedForm]);
  }
  const leave = other.connect(run_id, policy);
  await known(run_id, [readersForm]);
  leave(false);
  await known(run_id, []);
  // Both times of grace end, the one of this run first.
  vi.advanceTimersByTime(2_000);
  while (cancelled.length === 0) await turn();
  expect(cancelled).toEqual([left]);
});

it('a run is cancelled after its grace, also where the store took neither its reader nor the disconnect', async () => {
  const tap = new Tap();
  const { node, queue, store } = nodes([tap.agent]);
  const a = await node('a');
  queue.next = 'a';
  const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
  const plan = newPlan();
  plan.faults.setTargets = { fails: 1, times: 2 };
  const cancelled = new Promise<string>((cancel) => {
    const readers = new ConnectedReaders(new ReaderNodes(faulty(store, plan)), cancel);
    readers.connect(run_id, 'grace=0.1')(true);
  });
  expect(await cancelled).toBe(run_id);
  expect(plan.calls.setTargets).toBe(2);
});
