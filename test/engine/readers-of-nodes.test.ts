import { describe, expect, it } from 'vitest';
import { readersForm, targetsOf } from '../../src/core/push-targets.ts';
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
