import { firstValueFrom, toArray } from 'rxjs';
import { expect, it, vi } from 'vitest';
import { giveWay } from '../../src/core/timing.ts';
import { Sessions } from '../../src/engine/sessions.ts';
import { storeForAgents } from '../../src/engine/store/store-calls.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { append, fresh } from '../stores/writes.ts';
import { engineOf } from '../support/engine.ts';
import { turns } from '../support/turn.ts';

/** A clock that goes on by so many milliseconds at each look, from the next turn of the event loop on. */
async function slowClock(step: number): Promise<void> {
  await turns(2);
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => {
    now += step;
    return now;
  });
}

/** The turns of the event loop while something is done. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  let handle = setImmediate(function next() {
    count += 1;
    handle = setImmediate(next);
  });
  await work();
  clearImmediate(handle);
  return count;
}

it('gives way once a turn is long, and not before', async () => {
  await slowClock(1);
  const paused: boolean[] = [];
  for (let n = 0; n < 20; n += 1) {
    const nextTurn = giveWay();
    paused.push(nextTurn !== undefined);
    await nextTurn;
  }
  expect(paused.indexOf(true)).toBe(5);
  expect(paused.filter((one) => one)).toHaveLength(3);
});

it('a stored run of 6,000 events is folded in several turns', async () => {
  const store = new MemoryStore();
  const engine = await engineOf([], store, { sweepInterval: 60_000 });
  const run = { run_id: fresh().run_id, agent_name: 'echo', status: 'created', output: [], created_at: '2026-01-01' };
  const message = { role: 'agent', parts: [], created_at: '2026-01-01', completed_at: null };
  const part = { content_type: 'text/plain', content: 'a' };
  const first = [
    { type: 'run.created', run },
    { type: 'message.created', message },
  ].map((event) => JSON.stringify(event));
  let write = append(fresh({ status: 'awaiting', tier: 'durable' }), first);
  await store.commit([write]);
  const line = JSON.stringify({ type: 'message.part', part });
  while (write.row.last < 6_000) {
    write = append(write.row, Array(500).fill(line), { grown: true });
    await store.commit([write]);
  }
  // Each look at the clock stands for the work of a page.
  await slowClock(6);
  expect(await turnsOf(() => engine.run(write.row.run_id))).toBeGreaterThan(2);
  vi.restoreAllMocks();
});

it('a history of 2,000 messages is read in several turns', async () => {
  const store = new MemoryStore();
  const logFor = () => ({ debug() {}, info() {}, warn() {}, error() {} });
  const noFetch = () => Promise.reject(new Error('no'));
  const sessions = new Sessions(
    storeForAgents(store, 1_000, () => true),
    noFetch,
    () => 'http://here',
    logFor,
  );
  const row = fresh();
  const messages = Array.from({ length: 2_000 }, () => ({
    role: 'user',
    parts: [{ content_type: 'text/plain', content: 'a' }],
  }));
  await store.commit([append(row, ['1'], sessions.messageExtras(row.session_id, row.run_id, messages))]);
  await slowClock(6);
  const { signal } = new AbortController();
  const lazily = () => firstValueFrom(sessions.history(row, signal).pipe(toArray()));
  const atOnce = () => sessions.historyAt(row, undefined, signal);
  for (const read of [lazily, atOnce]) expect(await turnsOf(read)).toBeGreaterThan(3);
  vi.restoreAllMocks();
});
