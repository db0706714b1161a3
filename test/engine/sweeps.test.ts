import { map, of } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import type { Batch, RunRow } from '../../src/core/ports/run-store.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { engineOf } from '../support/engine.ts';
import { atRest, begin, begun, eventsOf, runOf, toTheEnd } from '../support/lives.ts';
import { textOf } from '../support/run-output.ts';
import { turn } from '../support/turn.ts';

/** Milliseconds that the runs wait for a reply. */
const timeToReply = 1_000;
const hurried = defineAgent(
  { name: 'hurried', description: 'Waits a second for a reply.' },
  (_, context) => context.await('?', { expiresIn: timeToReply }).pipe(map(() => 'ok')),
  { durable: true },
);
const works = defineAgent({ name: 'works', description: 'Answers.' }, () => of('worked'));

type Trouble = 'has no events' | 'makes the store fail';

/** A store with one run whose log cannot be read. */
class Unreadable extends MemoryStore {
  run_id: string | undefined;
  trouble: Trouble = 'has no events';
  /** Attempts to read its log. */
  reads = 0;
  sweeps = 0;

  override async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    if (run_id !== this.run_id) return super.events(run_id, after, limit);
    this.reads += 1;
    if (this.trouble === 'has no events') return [];
    throw new Error('disk I/O error');
  }

  override due(now: string, limit: number): Promise<RunRow[]> {
    this.sweeps += 1;
    return super.due(now, limit);
  }

  /** Resolves when the engine has begun so many further sweeps. */
  async swept(count: number): Promise<void> {
    for (const until = this.sweeps + count; this.sweeps < until; ) await turn();
  }
}

/** Runs that await in the store, in the order in which they are due, and an engine that has none of them in memory. */
async function awaiting(count: number): Promise<{ store: Unreadable; engine: Engine; run_ids: string[] }> {
  // The clock stands still: a slow machine would be late.
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const store = new Unreadable();
  const first = await startEngine([hurried], store, { passivateAfter: 1, sweepInterval: 1 });
  const run_ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const run_id = await begun(first, 'hurried');
    await atRest(store, run_id);
    run_ids.push(run_id);
    vi.advanceTimersByTime(1);
  }
  await first.stop();
  const engine = await startEngine([hurried, works], store, { sweepInterval: 2 });
  onTestFinished(() => engine.stop());
  return { store, engine, run_ids };
}

const statusOf = async (store: Unreadable, run_id: string): Promise<string | undefined> =>
  (await store.run(run_id))?.status;

const until = async (store: Unreadable, run_id: string, status: string): Promise<void> => {
  while ((await statusOf(store, run_id)) !== status) await turn();
};

const cases: [Trouble, number][] = [
  ['has no events', 0],
  ['has no events', 1],
  ['makes the store fail', 0],
  ['makes the store fail', 1],
];

describe('awaits that time out', () => {
  it('end when they are due, and not before', async () => {
    const { store, engine, run_ids } = await awaiting(2);
    const [first = '', second = ''] = run_ids;
    // The second one is due a millisecond later.
    vi.advanceTimersByTime(timeToReply - 3);
    await store.swept(3);
    expect([await statusOf(store, first), await statusOf(store, second)]).toEqual(['awaiting', 'awaiting']);
    vi.advanceTimersByTime(1);
    await until(store, first, 'failed');
    await store.swept(3);
    expect(await statusOf(store, second)).toBe('awaiting');
    vi.advanceTimersByTime(1);
    await until(store, second, 'failed');
    expect((await runOf(engine, second)).error).toMatchObject({ data: { reason: 'await_timeout' } });
  });

  it.each(cases)('end on time beside one whose log %s (place in the order: %i)', async (trouble, place) => {
    const { store, engine, run_ids } = await awaiting(2);
    const broken = run_ids[place] ?? '';
    const good = run_ids[1 - place] ?? '';
    Object.assign(store, { run_id: broken, trouble });
    vi.advanceTimersByTime(timeToReply);
    await until(store, good, 'failed');
    expect((await runOf(engine, good)).error).toMatchObject({ data: { reason: 'await_timeout' } });
    while (store.reads === 0) await turn();
    if (trouble === 'makes the store fail') {
      // It is tried again with each sweep, and ends when its log can be read.
      for (const reads = store.reads + 2; store.reads < reads; ) await turn();
      expect(await statusOf(store, broken)).toBe('awaiting');
      store.run_id = undefined;
    }
    await until(store, broken, 'failed');
    store.run_id = undefined;
    const { error, output } = await runOf(engine, broken);
    expect([error, output]).toMatchObject([{ data: { reason: 'await_timeout' } }, []]);
    expect((await eventsOf(engine, broken)).at(-1)).toMatchObject({ type: 'run.failed' });
    expect(textOf((await toTheEnd(engine, await begin(engine, 'works'))).run)).toBe('worked');
  });
});

it('keeps runs by the clock of the engine, which a test may set back', async () => {
  const store = new Unreadable();
  const clock = () => Date.UTC(2020, 0, 1);
  const engine = await engineOf([works], store, { sweepInterval: 1 }, { clock });
  const run_id = await begin(engine, 'works');
  expect(textOf((await toTheEnd(engine, run_id)).run)).toBe('worked');
  await store.swept(3);
  expect((await runOf(engine, run_id)).status).toBe('completed');
});
