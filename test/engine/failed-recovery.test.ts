import { map, merge, NEVER, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Agent, IfBusy } from '../../src/core/agent.ts';
import { fail } from '../../src/core/errors.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { isFinal } from '../../src/core/run-state.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { newId } from '../../src/engine/ids.ts';
import type { Run } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { agent, durable, echo } from '../support/agents.ts';
import { faulty, type Method, newPlan } from '../support/faulty-store.ts';
import { turn } from '../support/turn.ts';

const input = [{ parts: [{ content: 'hi' }] }];
const reply = { type: 'message' as const, message: { parts: [{ content: 'yes' }] } };

/** Agents that end only in the second life of their process. */
function agentsOf(isSecond: boolean): Agent[] {
  const work = () => (isSecond ? of('done') : NEVER);
  return [
    echo,
    agent('interrupted', () => NEVER),
    durable('works', work),
    durable('asks', (_, context) => context.await('?').pipe(map(() => 'answered'))),
    durable('asks-at-work', (_, context) => {
      const answer = context.await('?').pipe(map(() => 'answered'));
      return merge(context.step('work', work), answer);
    }),
  ];
}

/** A store that a process has left: in each session a run that has begun, and two that wait for it. */
async function leftStore() {
  const store = new MemoryStore();
  const plan = newPlan();
  const first = await startEngine(agentsOf(false), faulty(store, plan), { storeTimeout: 1 }, { onFailure() {} });
  const begun = new Map<string, string>();
  const queued: string[] = [];
  for (const agent_name of ['interrupted', 'works', 'asks', 'asks-at-work']) {
    const session_id = newId();
    const create = async (name: string, if_busy: IfBusy): Promise<string> =>
      (await first.create({ agent_name: name, session_id, input }, { if_busy })).run_id;
    const run_id = await create(agent_name, 'parallel');
    begun.set(agent_name, run_id);
    queued.push(await create('echo', 'enqueue'), await create('echo', 'enqueue'));
    const status = agent_name.startsWith('asks') ? 'awaiting' : 'in-progress';
    await expect.poll(async () => (await store.run(run_id))?.status, { interval: 1 }).toBe(status);
  }
  // As when the process is killed: what it does at its end is not written.
  plan.faults = { commit: { fails: 1, times: Number.POSITIVE_INFINITY } };
  await first.stop();
  return { store, begun, queued };
}

/** The status with which a run ends; it gets a reply to its question. */
async function endOf(engine: Engine, store: Store, run_id: string): Promise<string | undefined> {
  for (;;) {
    const row = await store.run(run_id);
    if (row === undefined || isFinal(row.status)) return row?.status;
    // Refused where it has been given, and where the store fails.
    if (row.status === 'awaiting') await engine.resume(run_id, reply).catch(() => undefined);
    await turn();
  }
}

const expected = { interrupted: 'failed', works: 'completed', asks: 'completed', 'asks-at-work': 'completed' };
const outages: [string, number, unknown][] = [
  ['fails', 1, new Error('an unknown failure')],
  ['is not available', 2, fail('store_unavailable')],
];

describe.each(outages)('a process that starts while its store %s for %i calls', (_, times, error) => {
  it.each<Method>(['unfinished', 'run', 'events', 'journal', 'input', 'commit'])(
    'of `%s`, whichever, ends all runs and begins those that wait for them',
    async (method) => {
      for (let fails = 1, calls = fails; fails <= Math.min(calls, 6); fails += 1) {
        const { store, begun, queued } = await leftStore();
        const plan = newPlan({ [method]: { fails, times, error } });
        const engine = await startEngine(agentsOf(true), faulty(store, plan), { sweepInterval: 1 }, { onFailure() {} });
        const ends = new Map<string, unknown>();
        for (const [name, run_id] of begun) ends.set(name, await endOf(engine, store, run_id));
        expect(Object.fromEntries(ends)).toEqual(expected);
        // The store did not fail while the process before had the run.
        const { error: cause }: Run = JSON.parse(await engine.run(begun.get('interrupted') ?? ''));
        expect(cause?.data?.reason, `after failure ${fails}`).toBe('run_interrupted');
        for (const run_id of queued) expect(await endOf(engine, store, run_id)).toBe('completed');
        await engine.stop();
        calls = plan.calls[method] ?? 0;
      }
    },
  );
});
