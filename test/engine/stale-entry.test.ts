import { from, map, NEVER } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { newId } from '../../src/engine/ids.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { createEngine, startEngine } from '../../src/testing/engine.ts';
import { durable, echo } from '../support/agents.ts';
import { faulty, newPlan } from '../support/faulty-store.ts';
import { Hold } from '../support/hold.ts';
import { begin } from '../support/lives.ts';
import { turn } from '../support/turn.ts';

const asks = durable('asks', (_, context) => context.await('?').pipe(map(() => 'answered')));
const input = [{ parts: [{ content: 'hi' }] }];

/**
 * A process that starts, and is held while it enters the run of another session. It has read the rows of two queued runs:
 * `next`, which has begun and ended since then, and `last`, which comes after it.
 */
async function startOver(sabotage: (store: MemoryStore, last: string) => void) {
  const store = new MemoryStore();
  const first = await startEngine([echo, durable('works', () => NEVER), asks], store);
  const session_id = newId();
  const create = async (agent_name: string, session: string, if_busy: 'parallel' | 'enqueue'): Promise<string> =>
    (await first.create({ agent_name, session_id: session, input }, { if_busy })).run_id;
  const working = await create('works', session_id, 'parallel');
  const next = await create('echo', session_id, 'enqueue');
  const elsewhere = await create('asks', newId(), 'parallel');
  const last = await create('echo', session_id, 'enqueue');
  const statusOf = async (run_id: string) => (await MemoryStore.prototype.run.call(store, run_id))?.status;
  while ((await statusOf(elsewhere)) !== 'awaiting' || (await statusOf(working)) !== 'in-progress') await turn();
  await first.stop();
  const recovery = new Hold();
  const { journal } = store;
  store.journal = async (run_id) => {
    if (run_id === elsewhere) await recovery.come();
    return journal.call(store, run_id);
  };
  sabotage(store, last);
  const works = new Hold();
  const done = durable('works', () => from(works.come().then(() => 'done')));
  const engine = createEngine([echo, done, asks], store, { sweepInterval: 5 });
  const started = engine.start();
  await recovery.held();
  await works.held();
  const ended = async (): Promise<void> => {
    await started;
    while ((await statusOf(last)) !== 'completed') await turn();
    expect(await statusOf(next)).toBe('completed');
  };
  return { engine, recovery, works, ended };
}

describe('a queued run whose turn comes while its process still starts', () => {
  const stopAtEnd = (engine: Engine) => onTestFinished(() => engine.stop());

  it('is executed where the store could not read it once', async () => {
    let failed = false;
    const { engine, recovery, works, ended } = await startOver((store, last) => {
      const { run } = store;
      store.run = async (run_id) => {
        if (run_id !== last || failed) return run.call(store, run_id);
        failed = true;
        throw new Error('once');
      };
    });
    stopAtEnd(engine);
    works.letGo();
    while (!failed) await turn();
    for (let n = 0; n < 5; n += 1) await turn();
    recovery.letGo();
    await ended();
  });

  it('is executed where the entry of the start has read it just before', async () => {
    const read = new Hold();
    const queued: unknown[] = [];
    const { engine, recovery, works, ended } = await startOver((store, last) => {
      const { run } = store;
      store.run = async (run_id) => {
        const row = await run.call(store, run_id);
        if (run_id !== last || queued.length > 0) return row;
        queued.push(row?.queued_at);
        await read.come();
        return row;
      };
    });
    stopAtEnd(engine);
    recovery.letGo();
    await read.held();
    expect(queued).toEqual([expect.any(String)]);
    works.letGo();
    for (let n = 0; n < 20; n += 1) await turn();
    read.letGo();
    await ended();
  });

  it('is executed, at whichever moment its start meets that of the process', async () => {
    const microtasks = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n += 1) await null;
    };
    for (let offset = -30; offset <= 30; offset += 1) {
      const begins = new Hold();
      const { engine, recovery, works, ended } = await startOver((store, last) => {
        const { commit } = store;
        store.commit = async (writes) => {
          const outcomes = await commit.call(store, writes);
          if (writes.some(({ row, when }) => row.run_id === last && when === 'first')) await begins.come();
          return outcomes;
        };
      });
      works.letGo();
      await begins.held();
      const inOrder = offset < 0 ? [recovery, begins] : [begins, recovery];
      for (const hold of inOrder) {
        hold.letGo();
        await microtasks(Math.abs(offset));
      }
      await ended();
      await engine.stop();
    }
  });
});

it('an agent is not called before the write that re-enters its run is durable, although sweeps offer the run', async () => {
  let calls = 0;
  const agent = durable('works', () => {
    calls += 1;
    return NEVER;
  });
  const disk = new MemoryStore();
  const first = await startEngine([agent], disk);
  const run_id = await begin(first, 'works');
  while (calls < 1) await turn();
  await first.stop();
  const write = new Hold();
  // The start cannot read the log, so that a sweep enters the run, and the next ones offer it.
  const plan = newPlan({ events: { fails: 1 }, commit: { before: () => write.come() } });
  const engine = await startEngine([agent], faulty(disk, plan), { sweepInterval: 1 });
  onTestFinished(() => engine.stop());
  onTestFinished(() => write.letGo());
  await write.held();
  const before = await disk.run(run_id);
  const sweeps = plan.calls.due ?? 0;
  while ((plan.calls.due ?? 0) < sweeps + 5) await turn();
  expect(await disk.run(run_id)).toEqual(before);
  expect(calls).toBe(1);
  write.letGo();
  while (calls < 2) await turn();
});

it.each([true, false])('a run that is created while its engine starts is executed; durable: %s', async (isDurable) => {
  const agent = defineAgent({ name: 'works', description: 'Works.' }, () => 'done', { durable: isDurable });
  const store = new MemoryStore();
  const [page, answer, row] = [new Hold(), new Hold(), new Hold()];
  const { commit, run, unfinished } = store;
  store.unfinished = async (...asked) => {
    if (asked[0] === undefined) await page.come();
    return unfinished.apply(store, asked);
  };
  store.commit = async (writes) => {
    const outcomes = await commit.call(store, writes);
    await answer.come();
    return outcomes;
  };
  store.run = async (run_id) => {
    await row.come();
    return run.call(store, run_id);
  };
  const engine = createEngine([agent], store, { sweepInterval: 5 });
  onTestFinished(() => engine.stop());
  const started = engine.start();
  const created = engine.create({ agent_name: 'works', input });
  await answer.held();
  // The start finds the run, which the engine does not know to be durable yet.
  page.letGo();
  await row.held();
  answer.letGo();
  const { run_id } = await created;
  row.letGo();
  await started;
  while ((await run.call(store, run_id))?.status !== 'completed') await turn();
});
