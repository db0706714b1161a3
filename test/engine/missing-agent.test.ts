import { concat, ignoreElements, map, merge, NEVER, type Observable, of } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Agent, silentLog } from '../../src/core/agent.ts';
import type { Store } from '../../src/core/ports/store.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { newId } from '../../src/engine/ids.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { agent, durable, echo } from '../support/agents.ts';
import { engineOf } from '../support/engine.ts';
import { faulty, newPlan } from '../support/faulty-store.ts';
import { atRest, toTheEnd } from '../support/lives.ts';
import { turn } from '../support/turn.ts';

const input = [{ parts: [{ content: 'hi' }] }];

/** Agents that end only where `work` does. */
const agentsOf = (work: () => Observable<string>): Agent[] => [
  durable('works', work),
  durable('asks', (_, context) => context.await('?').pipe(map(() => 'answered'))),
  durable('asks-at-work', (_, context) => merge(context.await('?'), context.step('work', work)).pipe(map(String))),
  agent('waits', () => 'done'),
];

/** The runs of a store whose process was killed; the last one waits for the first one. */
async function leftRuns(store: Store): Promise<Map<string, string>> {
  const plan = newPlan();
  const engine = await startEngine(
    agentsOf(() => NEVER),
    faulty(store, plan),
    { storeTimeout: 1 },
  );
  const session_id = newId();
  const runs = new Map<string, string>();
  for (const agent_name of ['works', 'asks', 'asks-at-work', 'waits']) {
    const isLast = agent_name === 'waits';
    const own = agent_name === 'works' || isLast ? { session_id } : {};
    const options = { if_busy: isLast ? ('enqueue' as const) : ('parallel' as const) };
    const { run_id } = await engine.create({ agent_name, input, ...own }, options);
    const status = isLast ? 'created' : agent_name === 'works' ? 'in-progress' : 'awaiting';
    while ((await store.run(run_id))?.status !== status) await turn();
    runs.set(agent_name, run_id);
  }
  plan.faults = { commit: { fails: 1, times: Number.POSITIVE_INFINITY } };
  await engine.stop();
  return runs;
}

/** A process that has none of the agents, and the warnings of its log. */
async function withoutAgents(store: Store): Promise<{ engine: Engine; warnings: string[] }> {
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (text: string) => void warnings.push(text) };
  return { engine: await startEngine([echo], store, { sweepInterval: 1 }, { log }), warnings };
}

const rowsOf = (store: Store, runs: ReadonlyMap<string, string>) =>
  Promise.all([...runs.values()].map((run_id) => store.run(run_id)));

describe('runs whose agent is missing after a restart', () => {
  it('stay as they are in the store, with one warning for each, and go on in a process that has the agent', async () => {
    const store = new MemoryStore();
    const runs = await leftRuns(store);
    const before = await rowsOf(store, runs);
    const { engine, warnings } = await withoutAgents(store);
    expect(await rowsOf(store, runs)).toEqual(before);
    // The one that is queued needs no agent yet. The one that awaits may have other work: it has not rested.
    const problem = (name: string): string =>
      `waits for its agent ${name}, which is not here; start a server that has it, or cancel the run`;
    expect(warnings.toSorted()).toEqual(['asks', 'asks-at-work', 'works'].map(problem));
    await engine.stop();
    const next = await engineOf(
      agentsOf(() => of('worked')),
      store,
    );
    for (const run_id of runs.values())
      expect((await toTheEnd(next, run_id, () => 'yes')).run.status).toBe('completed');
  });

  it('are cancelled without their agent, and a run that waits for one of them then waits for its own agent', async () => {
    const store = new MemoryStore();
    const runs = await leftRuns(store);
    const { engine, warnings } = await withoutAgents(store);
    const [works = '', , , waits = ''] = runs.values();
    for (const run_id of [...runs.values()].slice(0, 3)) {
      await engine.cancel(run_id);
      expect((await toTheEnd(engine, run_id)).run.status).toBe('cancelled');
    }
    while (!warnings.some((text) => text.includes('agent waits'))) await turn();
    expect(await store.run(waits)).toMatchObject({ status: 'created', queued_at: null });
    await engine.cancel(waits);
    expect((await store.run(works))?.status).toBe('cancelled');
    expect((await toTheEnd(engine, waits)).run.status).toBe('cancelled');
    await engine.stop();
  });

  it('do not keep the runs of other agents from waking, however many of them sleep', async () => {
    const store = new MemoryStore();
    const naps = (name: string): Agent =>
      durable(name, (_, context) => concat(context.sleep(1).pipe(ignoreElements()), of('woke')));
    const limits = { passivateAfter: 1, sweepInterval: 1 };
    // Its clock stands still, so that all runs are due at the same time, in the next process.
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const first = await startEngine([naps('gone'), naps('here')], store, limits);
    const runs: string[] = [];
    for (let n = 0; n <= 100; n += 1)
      runs.push((await first.create({ agent_name: n < 100 ? 'gone' : 'here', input })).run_id);
    for (const run_id of runs) await atRest(store, run_id);
    await first.stop();
    vi.advanceTimersByTime(1_000);
    const engine = await engineOf([naps('here')], store, limits);
    expect((await toTheEnd(engine, runs.at(-1) ?? '')).run.status).toBe('completed');
    expect(await store.count((await store.run(runs[0] ?? ''))?.session_id ?? '')).toBe(1);
  });
});
