import { describe, expect, it, vi } from 'vitest';
import type { RunRow } from '../../src/core/store.ts';
import { type CreatedRun, CreatedRuns } from '../../src/engine/runs/created-runs.ts';
import type { Run } from '../../src/index.ts';
import { fresh } from '../stores/writes.ts';
import { echo, Tap } from '../support/agents.ts';
import { nodes } from '../support/nodes.ts';
import { ask, finished, textOf } from '../support/serve.ts';

describe('a node that executes a run that it has created', () => {
  it('reads nothing of it from the store before it begins', async () => {
    const { node, store } = nodes([echo]);
    const a = await node('a');
    const reads = (['input', 'journal', 'events'] as const).map((method) => vi.spyOn(store, method));
    expect((await (await a.post('/runs', ask('echo', 'hi', { mode: 'sync' }))).json()).status).toBe('completed');
    expect(reads.map(({ mock }) => mock.calls.length)).toEqual([0, 0, 0]);
  });

  it('gives its agent the input as the client sent it', async () => {
    const { node } = nodes([echo]);
    const a = await node('a');
    const { run_id } = await (await a.post('/runs', ask('echo', 'as sent', { mode: 'async' }))).json();
    expect(textOf(await finished(a, run_id))).toBe('as sent');
  });

  it('does not execute it once another node has cancelled it, and has not said so', async () => {
    const tap = new Tap();
    const { node, queue, store } = nodes([tap.agent]);
    const [a, b] = [await node('a'), await node('b', { worker: false })];
    store.losesNotifications = true;
    queue.next = 'nothing';
    const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
    expect((await b.post(`/runs/${run_id}/cancel`)).status).toBe(202);
    queue.next = 'a';
    await queue.dispatcher('offering').offer([run_id]);
    expect(queue.holder(run_id)).toBe('a');
    await vi.waitFor(() => expect(queue.holder(run_id)).toBeUndefined());
    expect(tap.subscriptions).toBe(0);
    expect((await finished(a, run_id)).status).toBe('cancelled');
  });

  it('reads it again where another node has executed it meanwhile and died', async () => {
    const tap = new Tap();
    const { node, queue, store } = nodes([{ ...tap.agent, options: { durable: true } }]);
    await node('b');
    const a = await node('a');
    store.losesNotifications = true;
    queue.next = 'b';
    const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
    await tap.started();
    tap.push('one ');
    await vi.waitFor(async () => expect((await store.run(run_id))?.last).toBeGreaterThan(2));
    queue.next = 'a';
    queue.expireLeases('b');
    await vi.waitFor(() => expect(tap.subscriptions).toBe(2));
    tap.push('one ');
    tap.push('two ');
    tap.complete();
    expect(textOf(await finished(a, run_id))).toBe('one two ');
  });
});

describe('the runs that a node remembers', () => {
  const created = (chars: number, more: Partial<RunRow> = {}): CreatedRun => {
    const row = fresh(more);
    const { run_id, agent_name, session_id, created_at } = row;
    const run: Run = { run_id, agent_name, session_id, created_at, status: 'created', output: [] };
    return { row, run, input: [{ role: 'user', parts: [{ content_type: 'text/plain', content: 'x'.repeat(chars) }] }] };
  };

  it('are forgotten when they are taken, and when another process has written to them', () => {
    const runs = new CreatedRuns();
    const [taken, written] = [created(1), created(1)];
    for (const one of [taken, written]) runs.add(one);
    expect(runs.take(taken.row.run_id)).toBe(taken);
    expect(runs.take(taken.row.run_id)).toBeUndefined();
    const { run_id, epoch, last } = written.row;
    runs.onWritten({ run_id, epoch, last });
    runs.onWritten({ run_id: 'unknown', epoch: 9, last });
    runs.onWritten({ run_id, epoch: epoch + 1, last });
    expect(runs.take(run_id)).toBeUndefined();
  });

  it('take a bounded number of characters: the oldest are forgotten, and large ones not remembered', () => {
    const runs = new CreatedRuns();
    const large = created(70_000);
    const many = Array.from({ length: 200 }, () => created(1, { targets: 'x'.repeat(30_000) }));
    for (const one of [large, ...many]) runs.add(one);
    expect(runs.take(large.row.run_id)).toBeUndefined();
    const kept = many.filter(({ row }) => runs.take(row.run_id) !== undefined);
    expect(kept).toEqual(many.slice(-kept.length));
    expect(kept.length).toBeGreaterThan(120);
    expect(kept.length).toBeLessThan(140);
  });
});
