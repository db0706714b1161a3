import { concat, defer, map, NEVER, of, throwError } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type AgentFunction, silentLog } from '../../src/core/agent.ts';
import type { RunRow } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Limits } from '../../src/engine/limits.ts';
import { textOf } from '../../src/index.ts';
import type { Event } from '../../src/schema/event.ts';
import type { Run, RunStatus, RunSummary } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { durable, echo } from '../support/agents.ts';
import { answerOf, begun, eventsOf, runOf, toTheEnd } from '../support/lives.ts';
import { nodes } from '../support/nodes.ts';
import { textOf as runText } from '../support/run-output.ts';
import { ask, finished } from '../support/serve.ts';
import { turn, turns } from '../support/turn.ts';

const right: AgentFunction = (_, context) =>
  concat(of('Hello. '), context.await('Your name?').pipe(map(({ message }) => `You are ${textOf(message)}.`)));
/** What a wrong deploy does instead, and what it says of it. */
const wrong: readonly [what: string, agent: AgentFunction, reason: RegExp][] = [
  ['emits something else', () => of('Goodbye. '), /at event 4, expected .*Hello.*, got .*Goodbye/],
  ['ends sooner', () => of('Hello. '), /got its end/],
  ['throws', () => throwError(() => new Error('no such variable')), /got the error "no such variable"/],
  ['does nothing', () => NEVER, /got nothing/],
];
const limits = { sweepInterval: 2, idleTimeout: 50 };

const start = async (store: Store, agent: AgentFunction, more: Partial<Limits> = {}): Promise<Engine> => {
  const engine = await startEngine([durable('asks', agent)], store, { ...limits, ...more });
  onTestFinished(() => engine.stop());
  return engine;
};

/** A run that asks, in the store of a process that has stopped. */
async function asked(agent = right): Promise<{ store: MemoryStore; run_id: string; events: Event[] }> {
  const store = new MemoryStore();
  const engine = await start(store, agent);
  const run_id = await begun(engine, 'asks');
  await engine.stop();
  return { store, run_id, events: await eventsOf(engine, run_id) };
}

/** The row of a run, once it is parked with a later epoch than one, and with a status. */
async function parkedRow(store: Store, run_id: string, after = 0, status?: RunStatus): Promise<RunRow> {
  for (;;) {
    const row = await store.run(run_id);
    if (row?.parked != null && row.epoch > after && row.status === (status ?? row.status)) return row;
    await turn();
  }
}

/** The same, parked by a wrong deploy that still runs. */
async function parkedRun(more?: Partial<Limits>) {
  const left = await asked();
  const engine = await start(left.store, () => of('Goodbye. '), more);
  await parkedRow(left.store, left.run_id);
  return { ...left, engine };
}

const reply = (text: string) => ({ message: { parts: [{ content: text }] } });
const listed = async (engine: Engine): Promise<RunSummary[]> =>
  (await engine.runs({ parked: true }, undefined, 10)).runs.map((run): RunSummary => JSON.parse(run));

describe('a durable run whose agent does not repeat it after a deploy', () => {
  it.each(wrong)(
    'is parked where the agent %s, keeps its log, and goes on with the next deploy',
    async (_, agent, reason) => {
      const { store, run_id, events } = await asked();
      const engine = await start(store, agent);
      await parkedRow(store, run_id);
      const run = await runOf(engine, run_id);
      expect(run).toMatchObject({ status: 'awaiting', await_request: { id: '1' }, parked: { at: expect.any(String) } });
      expect(run.parked?.reason).toMatch(reason);
      expect(await eventsOf(engine, run_id)).toEqual(events);
      expect(await store.run(run_id)).toMatchObject({ attempts: 0 });
      await engine.stop();

      const next = await start(store, right);
      const ended = await toTheEnd(next, run_id, () => 'Ada');
      expect(runText(ended.run)).toBe('Hello. You are Ada.');
      expect(ended.run).not.toHaveProperty('parked');
      expect(ended.events.slice(0, events.length)).toEqual(events);
    },
  );

  it('is in the list and the feed of parked runs, until it is tried again', async () => {
    const { engine, run_id } = await parkedRun();
    expect(await listed(engine)).toMatchObject([
      { run_id, status: 'awaiting', parked: { reason: expect.stringMatching('Goodbye') } },
    ]);
    const feed = (await engine.watchRuns({ parked: true }, { limit: 10 }))[Symbol.asyncIterator]();
    const seen: RunSummary[] = [];
    const see = async (): Promise<void> => {
      for (const { type, data } of (await feed.next()).value ?? []) if (type === 'run') seen.push(JSON.parse(data).run);
    };
    await see();
    await engine.retry(run_id);
    while (seen.length < 3) await see();
    expect(seen.map(({ parked }) => parked !== undefined)).toEqual([true, false, true]);
    await feed.return?.();
  });

  it('is reported once for each attempt', async () => {
    const { store, run_id } = await asked();
    const warnings: string[] = [];
    const log = { ...silentLog, warn: (text: string) => void warnings.push(text) };
    const engine = await startEngine([durable('asks', () => of('Goodbye. '))], store, limits, { log });
    while (warnings.length < 1) await turn();
    await engine.retry(run_id);
    while (warnings.length < 2) await turn();
    await engine.stop();
    expect(warnings).toEqual(Array(2).fill(expect.stringMatching(`run ${run_id} parked: .*Goodbye`)));
  });

  it('goes on when an operator has it tried again, where what its agent needs is back', async () => {
    const { store, run_id } = await asked();
    let isBack = false;
    const engine = await start(store, (...args) => (isBack ? right(...args) : throwError(() => new Error('no key'))));
    await parkedRow(store, run_id);
    isBack = true;
    expect(await answerOf(engine.retry(run_id))).toBe('awaiting');
    expect(runText((await toTheEnd(engine, run_id, () => 'Ada')).run)).toBe('Hello. You are Ada.');
    expect(await answerOf(engine.retry(run_id))).toBe('not_parked');
  });

  it('keeps a reply that it gets meanwhile, and answers with it after the right deploy', async () => {
    const { store, engine, run_id } = await parkedRun();
    expect(JSON.parse((await engine.resume(run_id, reply('Ada'))).run)).toMatchObject({ status: 'in-progress' });
    await parkedRow(store, run_id, 0, 'in-progress');
    expect(await runOf(engine, run_id)).toMatchObject({
      status: 'in-progress',
      parked: { reason: expect.stringMatching('Goodbye') },
    });
    expect(await answerOf(engine.resume(run_id, reply('Bob')).then(({ run }) => run))).toBe('not_awaiting');
    await engine.stop();
    const next = await start(store, right);
    expect(runText((await toTheEnd(next, run_id)).run)).toBe('Hello. You are Ada.');
  });

  it('is cancelled at once, and no code of its agent is called', async () => {
    let entered = 0;
    const { store, run_id } = await asked();
    const engine = await start(store, () => defer(() => of(`Goodbye ${++entered}. `)));
    await parkedRow(store, run_id);
    await engine.cancel(run_id);
    expect(await runOf(engine, run_id)).toMatchObject({ status: 'cancelled' });
    expect(await store.run(run_id)).toMatchObject({ parked: null, rests_at: null });
    expect(entered).toBe(1);
    expect(await listed(engine)).toEqual([]);
  });

  it('ends cancelled where it was cancelled before', async () => {
    const { store, run_id } = await asked();
    const engine = await start(store, () => NEVER, { idleTimeout: 0 });
    await engine.cancel(run_id);
    await engine.stop();
    const next = await start(store, () => of('Goodbye. '));
    expect((await toTheEnd(next, run_id)).run.status).toBe('cancelled');
  });

  it('fails with await_timeout when its question expires', async () => {
    const brief: AgentFunction = (_, context) =>
      concat(of('Hello. '), context.await('Your name?', { expiresIn: 3_600_000 }).pipe(map(() => 'x')));
    // Two hours ago. Ids that are made ahead of the clock would stay ahead.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 7_200_000 });
    onTestFinished(() => void vi.useRealTimers());
    const { store, run_id } = await asked(brief);
    const engine = await start(store, () => of('Goodbye. '));
    await parkedRow(store, run_id);
    vi.useRealTimers();
    let ended = await runOf(engine, run_id);
    for (; ended.status === 'awaiting'; ended = await runOf(engine, run_id)) await turn();
    expect(ended).toMatchObject({ status: 'failed', error: { data: { reason: 'await_timeout' } } });
    expect(ended).not.toHaveProperty('parked');
  });

  it('is left alone by a process without its agent', async () => {
    const { store, engine, run_id } = await parkedRun();
    await engine.stop();
    const before = await store.run(run_id);
    const other = await startEngine([echo], store, limits);
    expect(await answerOf(other.retry(run_id))).toBe('agent_unknown');
    await other.stop();
    expect(await store.run(run_id)).toEqual(before);
  });

  it('fails where its agent fails after all that it has recorded', async () => {
    const { store, run_id } = await asked();
    const engine = await start(store, (_, context) =>
      concat(
        of('Hello. '),
        context.await('Your name?').pipe(
          map(() => {
            throw new Error('later');
          }),
        ),
      ),
    );
    const { run } = await toTheEnd(engine, run_id, () => 'Ada');
    expect(run).toMatchObject({ status: 'failed', error: { message: 'later' } });
  });
});

describe('a parked run of several nodes', () => {
  it('is tried again by each node that starts, and takes a reply at any of them', async () => {
    let deployed = right;
    const { store, node } = nodes([durable('asks', (...args) => deployed(...args))]);
    const a = await node('a');
    const { run_id }: Run = await (await a.post('/runs', ask('asks'))).json();
    deployed = () => of('Goodbye. ');
    const b = await node('b');
    await a.app.close();
    const { epoch = 0 } = { ...(await parkedRow(store, run_id)) };
    const c = await node('c');
    expect((await parkedRow(store, run_id, epoch)).status).toBe('awaiting');
    expect((await c.post(`/runs/${run_id}`, { await_resume: reply('Ada'), mode: 'async' })).status).toBe(202);
    const { epoch: last } = await parkedRow(store, run_id, epoch, 'in-progress');
    // No node offers it by itself.
    await turns(20);
    expect(await store.run(run_id)).toMatchObject({ epoch: last, status: 'in-progress' });
    deployed = right;
    const d = await node('d');
    expect(runText(await finished(b, run_id))).toBe('Hello. You are Ada.');
    expect((await d.post(`/runs/${run_id}/retry`, {})).status).toBe(409);
  });
});
