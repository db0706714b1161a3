import { expect, it, vi } from 'vitest';
import { never } from '../support/agents.ts';
import { eventually } from '../support/eventually.ts';
import { nodes } from '../support/nodes.ts';
import { ask } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

it('a poll of a shared store checks all idle runs, 16 of them at once', async () => {
  const { node, store } = nodes([never]);
  const served = await node('a', { limits: { pollInterval: 20 } });
  const run_ids: string[] = [];
  for (let n = 0; n < 40; n += 1)
    run_ids.push((await (await served.post('/runs', ask('never', 'hi', { mode: 'async' }))).json()).run_id);
  await eventually(async () => {
    const { runs } = await (await served.get('/runs?status=in-progress&limit=100')).json();
    expect(runs).toHaveLength(run_ids.length);
  });
  const checked = new Set<string>();
  let [open, most] = [0, 0];
  const read = store.run.bind(store);
  vi.spyOn(store, 'run').mockImplementation(async (run_id) => {
    checked.add(run_id);
    open += 1;
    most = Math.max(most, open);
    await turn();
    open -= 1;
    return read(run_id);
  });
  while (checked.size < run_ids.length) await turn();
  expect([...checked].toSorted()).toEqual(run_ids.toSorted());
  expect(most).toBe(16);
});
