import { of } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import type { Batch, RunRow } from '../../src/core/ports/run-store.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { engineOf } from '../support/engine.ts';
import { atRest, begin, begun, eventsOf, runOf, toTheEnd } from '../support/lives.ts';
import { nodes } from '../support/nodes.ts';
import { textOf } from '../support/run-output.ts';
import { ask, finished } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

/** Milliseconds that the runs wait for a reply. */
const timeToReply = 1_000;
/** An agent that asks. `ended` gets the runs in which its `finally` has run. */
function hurriedAgent() {
  const ended: string[] = [];
  const hurried = defineAgent(
    { name: 'hurried', description: 'Waits a second for a reply.' },
    async (_, context) => {
      try {
        await context.await('?', { expiresIn: timeToReply });
        return 'ok';
      } finally {
        ended.push(context.run_id);
      }
    },
    { durable: true },
  );
  return { hurried, ended };
}
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
async function awaiting(count: number) {
  // The clock stands still: a slow machine would be late.
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const { hurried, ended } = hurriedAgent();
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
  return { store, engine, run_ids, ended };
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
    // The process that gets the run to end it finds no log.
    const reason = trouble === 'has no events' ? 'log_removed' : 'await_timeout';
    expect([error, output]).toMatchObject([{ data: { reason } }, []]);
    expect((await eventsOf(engine, broken)).at(-1)).toMatchObject({ type: 'run.failed' });
    expect(textOf((await toTheEnd(engine, await begin(engine, 'works'))).run)).toBe('worked');
  });

  it('let the agent of a run that has left memory come to its end', async () => {
    const { store, run_ids, ended } = await awaiting(2);
    vi.advanceTimersByTime(timeToReply);
    for (const run_id of run_ids) await until(store, run_id, 'failed');
    expect([...ended].sort()).toEqual(run_ids);
  });

  it('let the agent of a run that another node executes come to its end', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const { hurried, ended } = hurriedAgent();
    const { node, queue, store } = nodes([hurried]);
    const looks = vi.spyOn(store, 'due');
    const a = await node('a', { limits: { sweepInterval: 2 } });
    await node('b', { limits: { sweepInterval: 86_400_000 } });
    queue.next = 'b';
    const { run_id } = await (await a.post('/runs', ask('hurried'))).json();
    vi.advanceTimersByTime(timeToReply);
    for (const most = looks.mock.calls.length + 3; looks.mock.calls.length < most; ) await turn();
    expect([(await store.run(run_id))?.status, ended]).toEqual(['awaiting', []]);
    queue.next = 'a';
    queue.expireLeases('b');
    expect((await finished(a, run_id)).error).toMatchObject({ data: { reason: 'await_timeout' } });
    expect(ended).toEqual([run_id]);
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
