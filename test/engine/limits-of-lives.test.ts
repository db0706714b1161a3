import { concat, concatMap, ignoreElements, lastValueFrom, map, of, range } from 'rxjs';
import { expect, it } from 'vitest';
import { type AgentContext, type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Limits } from '../../src/engine/limits.ts';
import type { Run } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { begin, runOf, toTheEnd } from '../support/lives.ts';
import { turn } from '../support/turn.ts';

const agentOf = (run: AgentFunction) =>
  defineAgent({ name: 'much', description: 'Does much.' }, run, { durable: true });
const reply = { message: { parts: [{ content: 'x'.repeat(20_000) }] } };
const values = (context: AgentContext, name: string) => context.step(name, () => range(0, 60)).pipe(ignoreElements());
const fails = (context: AgentContext, name: string) =>
  lastValueFrom(context.step(name, () => Promise.reject(new Error('x'.repeat(6_000))))).catch(() => undefined);

const cases: [string, AgentFunction, Partial<Limits>][] = [
  [
    'values of steps',
    (_, context) => concat(values(context, 'one'), context.await('?').pipe(ignoreElements()), values(context, 'two')),
    { events: 100 },
  ],
  [
    'errors of steps',
    async (_, context) => {
      await fails(context, 'one');
      await new Promise<void>((resolve) => void context.await('?').subscribe({ complete: resolve }));
      await fails(context, 'two');
      return 'done';
    },
    { chars: 31_000 },
  ],
  [
    'replies',
    (_, context) =>
      of(1, 2, 3, 4).pipe(
        concatMap((n) => context.await(`${n}?`)),
        map(() => 'ok'),
      ),
    { chars: 70_000 },
  ],
];

/** The end of a run whose questions are answered, each in a life of its own or all in one. */
async function endOf(run: AgentFunction, limits: Partial<Limits>, inLives: boolean): Promise<Run> {
  const store = new MemoryStore();
  const start = (): Promise<Engine> => startEngine([agentOf(run)], store, { ...limits, sweepInterval: 2 });
  let engine = await start();
  const run_id = await begin(engine, 'much');
  for (;;) {
    const { status } = await runOf(engine, run_id);
    if (status === 'awaiting') {
      if (inLives) {
        await engine.stop();
        engine = await start();
      }
      await engine.resume(run_id, reply);
    } else if (status === 'created' || status === 'in-progress') await turn();
    else break;
  }
  const ended = await toTheEnd(engine, run_id);
  await engine.stop();
  return ended.run;
}

it.each(cases)('the limits of a run count the %s of all its lives', async (_, run, limits) => {
  const expected = await endOf(run, limits, false);
  expect(expected).toMatchObject({ status: 'failed', error: { data: { reason: 'output_limit' } } });
  expect((await endOf(run, limits, true)).error).toEqual(expected.error);
  expect((await endOf(run, {}, true)).status).toBe('completed');
});
