import { concat, from, NEVER, type Observable, of } from 'rxjs';
import { expect, it, vi } from 'vitest';
import { agent } from '../support/agents.ts';
import { nodes } from '../support/nodes.ts';
import { ask, frames, textOf } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

/** Events that one read of a log asks for. */
const pageSize = 1_000;
const said = Array.from({ length: 3_000 }, (_, n) => `said ${n} `);
const values = Array.from({ length: 2_000 }, (_, n) => `value ${n} `);
it('a large run whose node is gone is read in pages elsewhere, and goes on after what it repeats', async () => {
  const calls = { agent: 0, step: 0 };
  const large = agent('large', (_, context) => {
    calls.agent += 1;
    const work = (): Observable<string> => {
      calls.step += 1;
      return from(values);
    };
    return concat(from(said), context.step('work', work), calls.agent === 1 ? NEVER : of('end'));
  });
  const { node, queue, store } = nodes([{ ...large, options: { durable: true } }]);
  const [gone, a] = [await node('gone'), await node('a')];
  queue.next = 'gone';
  const { run_id } = await (await gone.post('/runs', ask('large', 'hi', { mode: 'async' }))).json();
  // Before its output are its creation, its begin and the begin of its message.
  const written = 3 + said.length + values.length;
  while ((await store.run(run_id))?.last !== written) await turn();
  const read = vi.spyOn(store, 'events');
  const stream = await a.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' });
  queue.next = 'a';
  queue.expireLeases('gone');
  const seen = await frames(stream);
  // The end of its output, of its message and of the run.
  expect(seen.map(({ id }) => id)).toEqual(Array.from({ length: written + 3 }, (_, index) => index + 1));
  const parts = seen.flatMap(({ event }) => (event.type === 'message.part' ? [event.part.content] : []));
  expect(parts).toEqual([...said, ...values, 'end']);
  expect(textOf(await (await a.get(`/runs/${run_id}`)).json())).toBe(parts.join(''));
  expect(calls).toEqual({ agent: 2, step: 1 });
  expect(read.mock.calls.length).toBeGreaterThan(written / pageSize);
  for (const [, , limit] of read.mock.calls) expect(limit).toBeLessThanOrEqual(pageSize);
});
