import { map, NEVER, race } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import { textOf } from '../../src/core/parts.ts';
import type { RunRow } from '../../src/core/ports/run-store.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { begin, runOf, toTheEnd, whole } from '../support/lives.ts';
import { turn } from '../support/turn.ts';

const agentOf = (run: AgentFunction, durable = true) =>
  defineAgent({ name: 'sleeps', description: 'Sleeps.' }, run, { durable });

const deadlinesIn = (store: RecordingStore): string[] =>
  store.commits.flat().flatMap(({ journal = [] }) => journal.flatMap((line) => line.match(/"20\d\d-[^"]*Z"/g) ?? []));

/** Resolves when a row of the run passes. */
async function until(store: RecordingStore, run_id: string, passes: (row: RunRow) => boolean) {
  for (;;) {
    const row = await store.run(run_id);
    if (row !== undefined && passes(row)) return row;
    await turn();
  }
}

const quick = { passivateAfter: 1, sweepInterval: 1 };

const started = async (store: RecordingStore, run: AgentFunction, limits: object): Promise<Engine> =>
  startEngine([agentOf(run)], store, limits);

describe('an agent that sleeps', () => {
  it.each([true, false])('goes on after that time (durable: %s)', async (durable) => {
    const agent = agentOf(async function* (_, { sleep, sleepUntil }) {
      yield 'tired, ';
      await sleep(2);
      await sleepUntil(new Date(0));
      yield 'awake';
    }, durable);
    expect(textOf((await whole([agent])).run.output)).toBe('tired, awake');
  });

  it('leaves memory, keeps the time at which it wakes, and is re-entered then', async () => {
    const store = new RecordingStore();
    const nap: AgentFunction = async function* (_, { sleep }) {
      await sleep(300);
      yield 'awake';
    };
    const engine = await started(store, nap, quick);
    const run_id = await begin(engine, 'sleeps');
    const row = await until(store, run_id, ({ rests_at }) => rests_at !== null);
    expect(row).toMatchObject({ status: 'in-progress', due: JSON.parse(deadlinesIn(store)[0] ?? '""') });
    const { run } = await toTheEnd(engine, run_id);
    await engine.stop();
    expect(textOf(run.output)).toBe('awake');
    expect(new Set(deadlinesIn(store)).size).toBe(1);
    expect(Date.parse(run.finished_at ?? '')).toBeGreaterThanOrEqual(Date.parse(row.due ?? ''));
  });

  it('sleeps no longer because its server is restarted meanwhile', async () => {
    const store = new RecordingStore();
    const nap: AgentFunction = (_, context) =>
      race(context.await('Are you there?').pipe(map(() => 'yes')), context.sleep(400).pipe(map(() => 'no answer')));
    let engine = await started(store, nap, { passivateAfter: 0 });
    const run_id = await begin(engine, 'sleeps');
    while (deadlinesIn(store).length === 0) await turn();
    for (const limits of [{ passivateAfter: 0 }, quick]) {
      await engine.stop();
      engine = await started(store, nap, limits);
    }
    const { run } = await toTheEnd(engine, run_id);
    await engine.stop();
    expect(textOf(run.output)).toBe('no answer');
    expect(new Set(deadlinesIn(store)).size).toBe(1);
  });

  it('gets the reply to a question meanwhile, after it has left memory', async () => {
    const store = new RecordingStore();
    const engine = await started(
      store,
      (_, context) =>
        race(
          context.await('Are you there?').pipe(map(({ message }) => textOf(message))),
          context.sleep(1e9).pipe(map(() => 'no answer')),
        ),
      quick,
    );
    const run_id = await begin(engine, 'sleeps');
    await until(store, run_id, ({ rests_at }) => rests_at !== null);
    const { run } = await toTheEnd(engine, run_id, () => 'me');
    await engine.stop();
    expect(textOf(run.output)).toBe('me');
  });

  it('is neither idle nor at work, as far as its time limits go', async () => {
    const { run } = await whole(
      [
        agentOf(async function* (_, { sleep }) {
          await sleep(100);
          yield 'awake';
        }),
      ],
      undefined,
      { idleTimeout: 20, runTimeout: 40, sweepInterval: 1, passivateAfter: 0 },
    );
    expect(run.error).toBeUndefined();
  });

  it('stays in memory while it does something else as well', async () => {
    const store = new RecordingStore();
    const engine = await started(
      store,
      (_, { sleep, step }) =>
        race(
          sleep(1e9),
          step('work', () => NEVER),
        ).pipe(map(() => 'awake')),
      quick,
    );
    const run_id = await begin(engine, 'sleeps');
    while (deadlinesIn(store).length === 0) await turn();
    for (let turns = 0; turns < 100; turns += 1) await turn();
    expect((await store.run(run_id))?.rests_at).toBeNull();
    await engine.cancel(run_id);
    while ((await runOf(engine, run_id)).status !== 'cancelled') await turn();
    await engine.stop();
  });

  it('is told of a time that is none', async () => {
    const { run } = await whole([agentOf((_, { sleep }) => sleep(Number.NaN).pipe(map(() => '')))]);
    expect(run.error?.message).toContain('context.sleep: expected a time before the year 10000');
  });
});
