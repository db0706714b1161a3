import { NEVER } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { RunRow } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { ConnectedReaders } from '../../src/engine/cluster/connected-readers.ts';
import { ReaderNodes, readersOf } from '../../src/engine/cluster/reader-nodes.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { append, fresh } from '../stores/writes.ts';
import { durable } from '../support/agents.ts';
import { faulty, newPlan } from '../support/faulty-store.ts';
import { ask, framesUntil, serveApi } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

const endless = durable('endless', () => NEVER);
const sse = { accept: 'text/event-stream' };
const lease = 15_000;

const rowOf = async (store: Store, run_id: string): Promise<RunRow> => {
  const row = await store.run(run_id);
  if (row === undefined) throw new Error(`there is no run ${run_id}`);
  return row;
};
const readersIn = async (store: Store, run_id: string) =>
  readersOf(await rowOf(store, run_id)).map(({ readers }) => readers);

describe('a durable run whose server has crashed', () => {
  it.each(['cancel', 'grace=0.1'])('is cancelled where its reader does not come back, with %s', async (policy) => {
    const store = new MemoryStore();
    const plan = newPlan();
    const first = await serveApi([endless], { store: faulty(store, plan), limits: { requestTimeout: 50 } });
    const headers = { 'on-disconnect': policy };
    const stream = await first.post('/runs', ask('endless', 'x', { mode: 'stream' }), headers);
    const run_id = stream.headers.get('run-id') ?? '';
    const unread = await (await first.post('/runs', ask('endless', 'x', { mode: 'async' }), headers)).json();
    while (String(await readersIn(store, run_id)) !== 'connected') await turn();
    // As when the process is killed: it writes nothing any more.
    const never = { fails: 1, times: Number.POSITIVE_INFINITY };
    plan.faults = { commit: never, compareAndSet: never };
    const next = await serveApi([endless], { store, limits: { lease: 50, cancelGrace: 1 } });
    // A stream of its events would keep it.
    const statusOf = async (id: string): Promise<string> => (await (await next.get(`/runs/${id}`)).json()).status;
    await expect.poll(() => statusOf(run_id)).toBe('cancelled');
    // Nothing has ever read it.
    expect(await statusOf(unread.run_id)).toBe('in-progress');
    await stream.body?.cancel();
  });

  it('keeps what its last process knew of a client that had disconnected, also where that process was stopped', async () => {
    const store = new MemoryStore();
    const first = await serveApi([endless], { store });
    const headers = { 'on-disconnect': 'grace=3600' };
    const stream = await first.post('/runs', ask('endless', 'x', { mode: 'stream' }), headers);
    const run_id = stream.headers.get('run-id') ?? '';
    await framesUntil(stream, ({ event }) => event.type === 'run.in-progress');
    while (String(await readersIn(store, run_id)) !== 'disconnected') await turn();
    await first.app.close();
    expect(await readersIn(store, run_id)).toEqual(['disconnected']);
    const next = await serveApi([endless], { store });
    const reader = (await next.get(`/runs/${run_id}/events`, sse)).body?.getReader();
    while (String(await readersIn(store, run_id)) !== 'connected') await turn();
    await reader?.cancel();
  });

  it('goes on where a reader comes back within the lease, and is cancelled when that one has left', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const store = new MemoryStore();
    const write = append(fresh({ on_disconnect: 'cancel', tier: 'durable' }), ['1']);
    await store.commit([write]);
    const { run_id } = write.row;
    const cancelled: string[] = [];
    const process = () =>
      new ConnectedReaders(new ReaderNodes(store, lease, 'here'), (cancel) => void cancelled.push(cancel));
    const settled = async (): Promise<void> => {
      for (let turns = 0; turns < 20; turns += 1) await turn();
    };
    process().connect(run_id, 'cancel', true);
    await settled();
    const next = process();
    next.recover(await rowOf(store, run_id), lease);
    vi.advanceTimersByTime(lease - 1);
    const leave = next.connect(run_id, 'cancel', true);
    vi.advanceTimersByTime(lease);
    await settled();
    expect(cancelled).toEqual([]);
    leave(true);
    vi.advanceTimersByTime(1);
    while (cancelled.length === 0) await turn();
    expect(cancelled).toEqual([run_id]);
  });
});
