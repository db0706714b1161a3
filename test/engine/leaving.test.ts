import { concat, defer, finalize, map, merge, NEVER, type Observable, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type AgentContext, type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import { textOf as textOfMessage } from '../../src/core/parts.ts';
import type { Outcome, Write } from '../../src/core/ports/run-store.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Limits } from '../../src/engine/limits.ts';
import type { Run } from '../../src/schema/run.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { engineOf } from '../support/engine.ts';
import { atRest, begin, begun, runOf, toTheEnd } from '../support/lives.ts';
import { textOf } from '../support/run-output.ts';
import { turn } from '../support/turn.ts';

const reply = { type: 'message' as const, message: { parts: [{ content: 'yes ' }] } };
const agentOf = (run: AgentFunction) =>
  defineAgent({ name: 'asks', description: 'Asks while it works.' }, run, { durable: true });
/** Asks while a step works: such a run stays in memory. */
const asksWhile = (work: () => Observable<string>) =>
  agentOf((_, context) =>
    merge(context.await('Go on?').pipe(map(({ message }) => textOfMessage(message))), context.step('work', work)),
  );

/** A process with a run that awaits. */
async function awaiting(agent = asksWhile(() => NEVER), limits: Partial<Limits> = {}) {
  const store = new MemoryStore();
  const engine = await startEngine([agent], store, limits);
  const run_id = await begun(engine, 'asks');
  return { store, engine, run_id };
}

/** What it waits for is not part of its output, and has a teardown that throws. */
const throwing = agentOf((_, context) => {
  const failing = finalize(() => {
    throw new Error('a teardown of the agent');
  });
  context
    .step('work', () => NEVER)
    .pipe(failing)
    .subscribe({ error: () => {} });
  context
    .await('Go on?')
    .pipe(failing)
    .subscribe({ error: () => {} });
  return NEVER;
});

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

  it('keeps a reply that waits for its replay, although its agent throws when it is stopped', async () => {
    const { store, engine: first, run_id } = await awaiting();
    await first.stop();
    const second = await startEngine([throwing], store);
    const resumed = second.resume(run_id, reply);
    for (let turns = 0; turns < 10; turns += 1) await turn();
    await second.stop();
    expect(JSON.parse((await resumed).run).status).toBe('in-progress');
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

describe('an agent that throws when it is stopped', () => {
  it('does not keep its run from taking a reply while its process stops', async () => {
    const { engine, run_id } = await awaiting(throwing, { shutdownGrace: 60_000 });
    const stopped = engine.stop();
    for (let turns = 0; turns < 10; turns += 1) await turn();
    expect(JSON.parse((await engine.resume(run_id, reply)).run).status).toBe('in-progress');
    await stopped;
  });

  it('does not keep its run from being cancelled', async () => {
    const { engine, run_id } = await awaiting(throwing, { cancelGrace: 1 });
    expect(JSON.parse(await engine.cancel(run_id)).status).toBe('cancelling');
    expect((await toTheEnd(engine, run_id)).run.status).toBe('cancelled');
    await engine.stop();
  });
});

/** Asks a second question when the first is answered. */
function askTwice(context: AgentContext): Observable<string> {
  const answer = (question: string) =>
    defer(() => context.await(question)).pipe(map(({ message }) => textOfMessage(message)));
  return concat(answer('First?'), answer('Second?'));
}

/** Resolves when the run asks a question. */
async function asks(engine: Engine, run_id: string, question: string): Promise<void> {
  for (let asked = ''; asked !== question; await turn()) {
    const { await_request } = await runOf(engine, run_id);
    asked = await_request === undefined ? '' : textOfMessage(await_request.message);
  }
}

it('takes a reply without an id at each moment of a replay, as that to the last question', async () => {
  const two = agentOf((_, context) =>
    merge(
      askTwice(context),
      context.step('work', () => NEVER),
    ),
  );
  for (const moment of moments) {
    const store = new MemoryStore();
    const first = await startEngine([two], store);
    const run_id = await begin(first, 'asks');
    await asks(first, run_id, 'First?');
    await first.resume(run_id, reply);
    await asks(first, run_id, 'Second?');
    await first.stop();
    const second = await startEngine([two], store);
    for (let turns = 0; turns < moment; turns += 1) await turn();
    expect(JSON.parse((await second.resume(run_id, reply)).run).status).toBe('in-progress');
    await second.stop();
  }
});

describe('a re-entry before which another write came', () => {
  // A re-entry writes no event.
  const isReEntry = ({ from, lines }: Write): boolean => from !== undefined && lines.length === 0;

  class Disturbed extends MemoryStore {
    left = 0;
    /** Whether the re-entry has no answer yet. */
    waits = false;

    // As where a reply was stored while the run was read.
    override async commit(writes: readonly Write[]): Promise<Outcome[]> {
      if (this.left === 0 || !writes.some(isReEntry)) return super.commit(writes);
      this.left -= 1;
      while (this.waits) await turn();
      return writes.map((): Outcome => 'fenced');
    }
  }

  it('is repeated', async () => {
    const store = new Disturbed();
    const first = await startEngine([agentOf(() => NEVER)], store);
    const run_id = await begun(first, 'asks', 'in-progress');
    await first.stop();
    store.left = 1;
    const second = await engineOf([agentOf(() => of('done'))], store, { sweepInterval: 2 });
    expect(textOf((await toTheEnd(second, run_id)).run)).toBe('done');
    expect(store.left).toBe(0);
  });

  it('lets no reply wait for a replay that does not come', async () => {
    const store = new Disturbed();
    const agent = agentOf((_, context) => askTwice(context));
    const first = await startEngine([agent], store, { passivateAfter: 1, sweepInterval: 1 });
    const run_id = await begin(first, 'asks');
    await atRest(store, run_id);
    await first.stop();
    const engine = await engineOf([agent], store, { sweepInterval: 2 });
    Object.assign(store, { left: 1, waits: true });
    await engine.resume(run_id, reply);
    while (store.left > 0) await turn();
    const early = engine.resume(run_id, reply);
    for (let turns = 0; turns < 10; turns += 1) await turn();
    store.waits = false;
    await expect(early).rejects.toMatchObject({ kind: 'not_awaiting' });
    await asks(engine, run_id, 'Second?');
    await engine.resume(run_id, reply);
    expect((await toTheEnd(engine, run_id)).run.status).toBe('completed');
  });
});
