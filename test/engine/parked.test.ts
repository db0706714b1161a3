import { describe, expect, it } from 'vitest';
import { type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import { textOf } from '../../src/core/parts.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { answerOf, begin, runOf, toTheEnd } from '../support/lives.ts';
import { turn } from '../support/turn.ts';

const agentOf = (says: string) => {
  const run: AgentFunction = async function* (_, context) {
    yield says;
    yield textOf((await context.await('Go on?')).message);
  };
  return defineAgent({ name: 'asks', description: 'Asks.' }, run, { durable: true });
};
const [right, wrong] = [agentOf('Hello, '), agentOf('Hi, ')];
const reply = (content: string) => ({ message: { parts: [{ content }] } });

async function until(engine: Engine, run_id: string, passes: (run: { status: string; parked?: unknown }) => boolean) {
  for (;;) {
    const run = await runOf(engine, run_id);
    if (passes(run)) return run;
    await turn();
  }
}

/** A run that awaits, in a store that the wrong agent has opened after that. */
async function parked(): Promise<{ store: MemoryStore; run_id: string; engine: Engine }> {
  const store = new MemoryStore();
  const first = await startEngine([right], store);
  const run_id = await begin(first, 'asks');
  await until(first, run_id, ({ status }) => status === 'awaiting');
  await first.stop();
  // How long a replay may stand still.
  const engine = await startEngine([wrong], store, { idleTimeout: 20, sweepInterval: 1 });
  await until(engine, run_id, (run) => run.parked !== undefined);
  return { store, run_id, engine };
}

describe('a run whose agent does not repeat it', () => {
  it('is parked with the reason, in the run and in lists, and keeps its question', async () => {
    const { run_id, engine } = await parked();
    const run = await runOf(engine, run_id);
    expect(run).toMatchObject({ status: 'awaiting', await_request: { id: '1' } });
    expect(run.parked?.reason).toContain('Hi, ');
    const [listed] = (await engine.runs({}, undefined, 10)).runs;
    expect(JSON.parse(listed ?? '')).toMatchObject({ run_id, status: 'awaiting', parked: run.parked });
    await engine.stop();
  });

  it('is tried again by the next process, and goes on there', async () => {
    const { store, run_id, engine } = await parked();
    await engine.stop();
    const next = await startEngine([right], store);
    const { run } = await toTheEnd(next, run_id, () => 'Ada');
    await next.stop();
    expect(textOf(run.output)).toBe('Hello, \n\nAda');
    expect(run.parked).toBeUndefined();
  });

  it('keeps a reply that comes meanwhile for the right agent', async () => {
    const { store, run_id, engine } = await parked();
    await engine.resume(run_id, reply('Bob'));
    await until(engine, run_id, (run) => run.status === 'in-progress' && run.parked !== undefined);
    await engine.stop();
    const next = await startEngine([right], store);
    const { run } = await toTheEnd(next, run_id);
    await next.stop();
    expect(textOf(run.output)).toBe('Hello, \n\nBob');
  });

  it('is tried again by an operator, and parked again where it still differs', async () => {
    const { store, run_id, engine } = await parked();
    const { epoch } = (await store.run(run_id)) ?? { epoch: 0 };
    expect(await answerOf(engine.retry(run_id))).toBe('awaiting');
    await until(engine, run_id, (run) => run.parked !== undefined);
    expect((await store.run(run_id))?.epoch).toBeGreaterThan(epoch + 1);
    expect((await store.run(run_id))?.attempts).toBe(0);
    await engine.stop();
  });

  it('ends when it is cancelled', async () => {
    const { run_id, engine } = await parked();
    await engine.cancel(run_id);
    const { run } = await toTheEnd(engine, run_id);
    expect(run.status).toBe('cancelled');
    expect(run.parked).toBeUndefined();
    expect(await answerOf(engine.retry(run_id))).toBe('not_parked');
    await engine.stop();
  });

  it('says that a run which is not parked cannot be tried again', async () => {
    const engine = await startEngine([right], new MemoryStore());
    const run_id = await begin(engine, 'asks');
    await until(engine, run_id, ({ status }) => status === 'awaiting');
    expect(await answerOf(engine.retry(run_id))).toBe('not_parked');
    await engine.stop();
  });
});
