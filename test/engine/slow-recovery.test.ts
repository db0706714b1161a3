import { concat, from, map, merge, NEVER, of } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Agent, type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import { textOf as textOfMessage } from '../../src/core/parts.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { createEngine, startEngine } from '../../src/testing/engine.ts';
import { deferred } from '../support/deferred.ts';
import { faulty, newPlan } from '../support/faulty-store.ts';
import { Hold } from '../support/hold.ts';
import { begin, toTheEnd } from '../support/lives.ts';
import { nodes } from '../support/nodes.ts';
import { ask, eventsOf, finished, type Served, textOf } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await holds())) await turn();
};
const isEnd = ({ type }: { type: string }): boolean => /^run\.(completed|failed|cancelled)$/.test(type);
const await_resume = { type: 'message' as const, message: { parts: [{ content: 'yes' }] } };

interface Counted {
  readonly agent: Agent;
  readonly calls: { count: number };
}

const durable = (run: AgentFunction): Agent =>
  defineAgent({ name: 'works', description: 'Works.' }, run, { durable: true });

/** Works in its first life until its node is gone, and in later ones until `finish`. */
function works(): Counted & { readonly finish: () => void } {
  const calls = { count: 0 };
  let finish = (): void => {};
  const done = new Promise<string>((resolve) => (finish = () => resolve('done')));
  const agent = durable(() => {
    calls.count += 1;
    return calls.count === 1 ? NEVER : from(done);
  });
  return { agent, calls, finish };
}

/**
 * Asks beside a step that its first life never ends: a run with an open step is re-entered, although it awaits. It ends
 * after the reply and `finish`.
 */
function asksAtWork(): Counted & { readonly finish: () => void } {
  const calls = { count: 0 };
  let finish = (): void => {};
  const done = new Promise<string>((resolve) => (finish = () => resolve('done')));
  const agent = durable((_, context) => {
    calls.count += 1;
    const work = calls.count === 1 ? NEVER : of('worked ');
    const answer = context.await('Go on?').pipe(map(({ message }) => textOfMessage(message)));
    const worked = context.step('work', () => work);
    return concat(merge(worked, answer), from(done));
  });
  return { agent, calls, finish };
}

/** Holds the next read of a log. */
function holdNextLog(store: Store) {
  const { events } = store;
  const read = new Hold();
  store.events = async (...args) => {
    store.events = events;
    await read.come();
    return events.apply(store, args);
  };
  return { held: () => read.held(), letGo: () => read.letGo() };
}

/** A run whose node is gone. Node `a` re-enters it, and still reads its log. */
async function recovering({ agent, calls }: Counted, status = 'in-progress') {
  const { node, queue, store } = nodes([agent]);
  const gone = await node('gone');
  const [a, b] = [await node('a', { limits: { lease: 5 } }), await node('b')];
  queue.next = 'gone';
  const { run_id } = await (await gone.post('/runs', ask('works', 'hi', { mode: 'async' }))).json();
  await until(async () => calls.count === 1 && (await store.run(run_id))?.status === status);
  const { held, letGo } = holdNextLog(store);
  queue.next = 'a';
  queue.expireLeases('gone');
  await held();
  return { a, b, run_id, queue, store, letGo };
}

async function ended(served: Served, run_id: string) {
  const run = await finished(served, run_id);
  const events = await eventsOf(served, run_id);
  return { status: run.status, text: textOf(run), ends: events.filter(isEnd).length };
}

describe('a run whose recovery is slow', () => {
  it('is executed once more, although sweeps try to re-enter it meanwhile', async () => {
    const { agent, calls, finish } = works();
    const disk = new MemoryStore();
    const first = await startEngine([agent], disk);
    const run_id = await begin(first, 'works');
    await until(() => calls.count === 1);
    await first.stop();
    const { promise: released, resolve: letGo } = deferred();
    // The start cannot read the log; the sweeps re-enter the run.
    const plan = newPlan({ events: { fails: 1, before: (call) => (call === 1 ? undefined : released) } });
    const engine = await startEngine([agent], faulty(disk, plan), { sweepInterval: 1 });
    onTestFinished(() => engine.stop());
    await until(() => plan.calls.events === 2);
    const sweeps = (plan.calls.due ?? 0) + 5;
    await until(() => (plan.calls.due ?? 0) >= sweeps);
    expect(plan.calls.events).toBe(2);
    letGo();
    await until(() => calls.count > 1);
    finish();
    const { run, events } = await toTheEnd(engine, run_id);
    expect([run.status, events.filter(isEnd).length, calls.count]).toEqual(['completed', 1, 2]);
  });

  it('is executed once more, although its node gets it again and again', async () => {
    const { agent, calls, finish } = works();
    const { a, run_id, queue, letGo } = await recovering({ agent, calls });
    for (let times = 0; times < 5; times += 1) {
      queue.giveAgain(run_id);
      await until(() => queue.holder(run_id) === 'a');
    }
    letGo();
    await until(() => calls.count > 1);
    finish();
    expect(await ended(a, run_id)).toEqual({ status: 'completed', text: 'done', ends: 1 });
    expect(calls.count).toBe(2);
  });

  it('is executed once more, although another node re-enters it meanwhile', async () => {
    const { agent, calls, finish } = works();
    const { a, b, run_id, queue, store, letGo } = await recovering({ agent, calls });
    queue.next = 'b';
    queue.expireLeases('a');
    await until(() => calls.count === 2);
    const commit = vi.spyOn(store, 'commit');
    letGo();
    await until(() => commit.mock.calls.length > 0);
    expect(await commit.mock.results[0]?.value).toEqual(['fenced']);
    finish();
    expect(await ended(b, run_id)).toEqual({ status: 'completed', text: 'done', ends: 1 });
    expect(await eventsOf(a, run_id)).toEqual(await eventsOf(b, run_id));
    expect(calls.count).toBe(2);
  });

  it('is executed once more, although its node got it twice and then lost it to another one', async () => {
    const { agent, calls, finish } = works();
    const { b, run_id, queue, letGo } = await recovering({ agent, calls });
    queue.giveAgain(run_id);
    await until(() => queue.holder(run_id) === 'a');
    queue.next = 'b';
    queue.expireLeases('a');
    await until(() => calls.count === 2);
    letGo();
    // Long enough for the entries of node `a` to read the run and to write to it.
    for (let n = 0; n < 100; n += 1) await turn();
    finish();
    expect(await ended(b, run_id)).toEqual({ status: 'completed', text: 'done', ends: 1 });
    expect(calls.count).toBe(2);
  });

  it('is executed once more where it gets a reply meanwhile', async () => {
    const { agent, calls, finish } = asksAtWork();
    finish();
    const { a, run_id, letGo } = await recovering({ agent, calls }, 'awaiting');
    // The node takes the reply when its agent has come to the question.
    const replied = a.post(`/runs/${run_id}`, { await_resume, mode: 'async' });
    for (let turns = 0; turns < 50; turns += 1) await turn();
    letGo();
    expect((await replied).status).toBe(202);
    expect(await ended(a, run_id)).toEqual({ status: 'completed', text: 'yesworked done', ends: 1 });
    expect(calls.count).toBe(2);
  });

  it('is executed once more where it gets a reply while its engine starts', async () => {
    const { agent, calls, finish } = asksAtWork();
    const store = new MemoryStore();
    const first = await startEngine([agent], store);
    const run_id = await begin(first, 'works');
    await until(async () => (await store.run(run_id))?.status === 'awaiting');
    await first.stop();
    const { held, letGo } = holdNextLog(store);
    const engine = createEngine([agent], store, { sweepInterval: 1 });
    onTestFinished(() => engine.stop());
    const started = engine.start();
    await held();
    await engine.resume(run_id, await_resume);
    for (let turns = 0; turns < 50; turns += 1) await turn();
    letGo();
    await started;
    await until(() => calls.count > 1);
    for (let turns = 0; turns < 50; turns += 1) await turn();
    finish();
    const { run, events } = await toTheEnd(engine, run_id);
    expect([run.status, events.filter(isEnd).length, calls.count]).toEqual(['completed', 1, 2]);
  });

  it('is not executed again where it is cancelled meanwhile', async () => {
    const { agent, calls } = works();
    const { a, run_id, queue, letGo } = await recovering({ agent, calls });
    expect((await a.post(`/runs/${run_id}/cancel`)).status).toBe(202);
    letGo();
    await until(() => queue.holder(run_id) === undefined);
    expect(await ended(a, run_id)).toEqual({ status: 'cancelled', text: '', ends: 1 });
    expect(calls.count).toBe(1);
  });
});
