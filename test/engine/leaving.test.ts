import { map, merge, NEVER, type Observable, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import { textOf as textOfMessage } from '../../src/core/parts.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Run } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { begin, runOf, toTheEnd } from '../support/lives.ts';
import { textOf } from '../support/run-output.ts';

const reply = { type: 'message' as const, message: { parts: [{ content: 'yes ' }] } };
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const agentOf = (run: AgentFunction) =>
  defineAgent({ name: 'asks', description: 'Asks while it works.' }, run, { durable: true });
/** Asks while a step works: such a run stays in memory. */
const asksWhile = (work: () => Observable<string>) =>
  agentOf((_, context) =>
    merge(context.await('Go on?').pipe(map(({ message }) => textOfMessage(message))), context.step('work', work)),
  );

/** A process with a run that awaits. */
async function awaiting(): Promise<{ store: MemoryStore; engine: Engine; run_id: string }> {
  const store = new MemoryStore();
  const engine = await startEngine([asksWhile(() => NEVER)], store);
  const run_id = await begin(engine, 'asks');
  while ((await runOf(engine, run_id)).status !== 'awaiting') await turn();
  return { store, engine, run_id };
}

/** The end of the run in the next process. */
async function endOf(store: MemoryStore, run_id: string): Promise<Run> {
  const engine = await startEngine([asksWhile(() => of('worked '))], store);
  const { run } = await toTheEnd(engine, run_id);
  await engine.stop();
  return run;
}

/** Microtasks between the stop and the request; the stop has let the run go long before the last. */
const moments = Array.from({ length: 30 }, (_, moment) => moment);

describe('a run that leaves its process', () => {
  it('keeps a reply that waits for its replay', async () => {
    const { store, engine: first, run_id } = await awaiting();
    await first.stop();
    // Its second life never comes to the question again.
    const second = await startEngine([agentOf(() => NEVER)], store);
    const resumed = second.resume(run_id, reply);
    for (let turns = 0; turns < 10; turns += 1) await turn();
    await second.stop();
    expect(JSON.parse((await resumed).run).status).toBe('in-progress');
    const run = await endOf(store, run_id);
    expect(run.status).toBe('completed');
    expect(textOf(run)).toContain('yes ');
  });

  it('takes a reply at each moment', async () => {
    for (const moment of moments) {
      const { store, engine, run_id } = await awaiting();
      const stopped = engine.stop();
      for (let microtask = 0; microtask < moment; microtask += 1) await undefined;
      const { run } = await engine.resume(run_id, reply);
      expect(JSON.parse(run).status).toBe('in-progress');
      await stopped;
      expect(textOf(await endOf(store, run_id))).toContain('yes ');
    }
  });

  it('can be cancelled at each moment', async () => {
    for (const moment of moments) {
      const { store, engine, run_id } = await awaiting();
      const stopped = engine.stop();
      for (let microtask = 0; microtask < moment; microtask += 1) await undefined;
      expect(JSON.parse(await engine.cancel(run_id)).status).toBe('cancelling');
      await stopped;
      expect((await endOf(store, run_id)).status).toBe('cancelled');
    }
  });
});
