import { map, merge } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Agent, type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import { textOf as textOfMessage } from '../../src/core/parts.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Event } from '../../src/schema/event.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { deferred } from '../support/deferred.ts';
import { engineOf } from '../support/engine.ts';
import { faulty, newPlan } from '../support/faulty-store.ts';
import { answerOf, begun, toTheEnd } from '../support/lives.ts';
import { nodes, pairOf } from '../support/nodes.ts';
import { eventsOf, finished, type Served } from '../support/serve.ts';
import { awaitingOn } from '../support/takeovers.ts';
import { turn, turns } from '../support/turn.ts';

const reply = { type: 'message' as const, message: { parts: [{ content: 'yes' }] } };
const agentOf = (durable: boolean, run: AgentFunction) =>
  defineAgent({ name: 'asks', description: 'Asks once.' }, run, { durable });
const asks: AgentFunction = (_, context) => context.await('Go on?').pipe(map(({ message }) => textOfMessage(message)));

/** Asks while it works, and ignores its signal: its runs are `cancelling` until their work is done. */
function asksAtWork() {
  const working: (() => void)[] = [];
  const work = (): Promise<string> => new Promise((resolve) => working.push(() => resolve('worked')));
  const agent = agentOf(true, (_, context) =>
    merge(context.await('Go on?').pipe(map(({ message }) => textOfMessage(message))), context.step('work', work)),
  );
  const finish = (): void => {
    for (const end of working.splice(0)) end();
  };
  return { agent, finish };
}

/** Microtasks or turns between the first request and the second. */
const moments = Array.from({ length: 31 }, (_, moment) => moment);
/** As many turns, in fewer requests. */
const someMoments = moments.filter((moment) => moment % 5 === 0);
const orders = ['cancel', 'resume'] as const;
/** The request that the node which executes the run gets. The other node gets the other one, or both. */
const places = [...orders, 'neither'] as const;

interface Requests {
  readonly cancel: () => Promise<string>;
  readonly resume: () => Promise<string>;
  readonly wait: () => Promise<void>;
}

/** The answers to both requests; the other one is sent `wait` after the first. */
async function race(first: (typeof orders)[number], { cancel, resume, wait }: Requests) {
  if (first === 'cancel') {
    const cancelled = cancel();
    await wait();
    const resumed = resume();
    return { cancelled: await cancelled, resumed: await resumed };
  }
  const resumed = resume();
  await wait();
  const cancelled = cancel();
  return { cancelled: await cancelled, resumed: await resumed };
}

/** Both answers agree with what became of the run. */
function check(answers: Awaited<ReturnType<typeof race>>, status: string, events: readonly Event[]): void {
  expect(['cancelling', 'already_final']).toContain(answers.cancelled);
  expect(['in-progress', 'not_awaiting', 'conflict']).toContain(answers.resumed);
  expect(status).toBe(answers.cancelled === 'cancelling' ? 'cancelled' : 'completed');
  const taken = events.some((event) => 'run' in event && event.run.await_resume !== undefined);
  expect(taken).toBe(answers.resumed === 'in-progress');
  const ends = events.filter(({ type }) => type === 'run.cancelled' || type === 'run.completed');
  expect(ends).toEqual(events.slice(-1));
}

const microtasks = async (count: number): Promise<void> => {
  for (let microtask = 0; microtask < count; microtask += 1) await undefined;
};

const requestsOf = (engine: Engine, run_id: string): Omit<Requests, 'wait'> => ({
  cancel: () => answerOf(engine.cancel(run_id)),
  resume: () => answerOf(engine.resume(run_id, reply).then(({ run }) => run)),
});

describe('a run whose cancel was acknowledged', () => {
  describe.each(orders)('at about the same moment as a reply, the %s first,', (first) => {
    it.each([true, false])('ends cancelled, and takes no reply any more (durable: %s)', async (durable) => {
      const engine = await engineOf([agentOf(durable, asks)]);
      for (const pass of [microtasks, turns]) {
        for (const moment of moments) {
          const run_id = await begun(engine, 'asks');
          const answers = await race(first, { ...requestsOf(engine, run_id), wait: () => pass(moment) });
          await expect(engine.resume(run_id, reply)).rejects.toMatchObject({ kind: 'not_awaiting', status: 409 });
          const { run, events } = await toTheEnd(engine, run_id);
          check(answers, run.status, events);
        }
      }
    });

    it('ends cancelled where it is in the store alone', async () => {
      for (const moment of moments) {
        const store = new MemoryStore();
        const before = await startEngine([agentOf(true, asks)], store);
        const run_id = await begun(before, 'asks');
        await before.stop();
        const engine = await startEngine([agentOf(true, asks)], store);
        const answers = await race(first, { ...requestsOf(engine, run_id), wait: () => microtasks(moment) });
        const { run, events } = await toTheEnd(engine, run_id);
        check(answers, run.status, events);
        await expect(engine.resume(run_id, reply)).rejects.toMatchObject({ kind: 'not_awaiting' });
        await engine.stop();
      }
    });

    it.each(orders)('ends cancelled where the node that executes it gets the %s', async (near) => {
      for await (const { a, b, run_id, answers } of racesOnNodes(agentOf(true, asks), first, near)) {
        const { status } = await finished(a, run_id);
        check(answers, status, await eventsOf(a, run_id));
        expect(await resumeOn(a, run_id)).toBe('not_awaiting');
        expect(await eventsOf(b, run_id)).toEqual(await eventsOf(a, run_id));
      }
    });

    it.each(places)('ends cancelled where it is not durable (its node gets: %s)', async (near) => {
      for await (const { a, b, run_id, answers } of racesOnNodes(agentOf(false, asks), first, near)) {
        const { status } = await finished(a, run_id);
        check(answers, status, await eventsOf(a, run_id));
        for (const one of [a, b]) expect(await resumeOn(one, run_id)).toBe('not_awaiting');
        expect(await eventsOf(b, run_id)).toEqual(await eventsOf(a, run_id));
      }
    });

    it.each(orders)('ends cancelled where it still works, and its node gets the %s', async (near) => {
      const { agent, finish } = asksAtWork();
      for await (const { a, run_id, answers } of racesOnNodes(agent, first, near)) {
        expect(answers.cancelled).toBe('cancelling');
        expect(await resumeOn(a, run_id)).toBe('not_awaiting');
        finish();
        const { status } = await finished(a, run_id);
        check(answers, status, await eventsOf(a, run_id));
      }
    });
  });
});

describe('a run that is cancelling, and whose last event is its question', () => {
  it('refuses a reply in its own process and on another node', async () => {
    const { agent, finish } = asksAtWork();
    const { a, b, store } = await pairOf([agent]);
    const run_id = await awaitingOn(a);
    expect(await cancelOn(b, run_id)).toBe('cancelling');
    expect((await store.run(run_id))?.status).toBe('cancelling');
    expect((await eventsOf(a, run_id)).at(-1)?.type).toBe('run.awaiting');
    for (const one of [a, b]) expect(await resumeOn(one, run_id)).toBe('not_awaiting');
    finish();
    expect((await finished(a, run_id)).status).toBe('cancelled');
  });

  it('refuses a reply that has read the run before the cancel was stored', async () => {
    const { agent, finish } = asksAtWork();
    const { a, b, store } = await pairOf([agent]);
    const run_id = await awaitingOn(a);
    const row = await store.run(run_id);
    const { promise: hasRead, resolve: read } = deferred();
    const { promise: cancelled, resolve: goOn } = deferred();
    const { events } = store;
    // The reply reads the log after the row, and before its write.
    store.events = async (...args) => {
      store.events = events;
      read();
      await cancelled;
      return events.apply(store, args);
    };
    const resumed = resumeOn(a, run_id);
    await hasRead;
    expect(row?.status).toBe('awaiting');
    expect(await cancelOn(b, run_id)).toBe('cancelling');
    goOn();
    expect(['not_awaiting', 'conflict']).toContain(await resumed);
    finish();
    expect((await finished(a, run_id)).status).toBe('cancelled');
  });

  it('refuses a reply where its node is gone', async () => {
    const { agent, finish } = asksAtWork();
    const { node, queue, store } = nodes([agent]);
    const a = await node('a', { worker: false });
    const b = await node('b');
    queue.next = 'b';
    const run_id = await awaitingOn(a);
    await cancelOn(b, run_id);
    queue.next = 'nothing';
    queue.expireLeases('b');
    expect(await resumeOn(a, run_id)).toBe('not_awaiting');
    expect((await store.run(run_id))?.status).toBe('cancelling');
    finish();
  });
});

/**
 * Races about runs that the second of two nodes executes. That node gets the request `near`, and the other node the rest.
 */
async function* racesOnNodes(agent: Agent, first: (typeof orders)[number], near: (typeof places)[number]) {
  const { node, queue, store } = nodes([agent]);
  // As over a network, so that each request meets the other one between any two of its calls.
  const slow = { before: turn, after: turn };
  const options = { store: faulty(store, newPlan({ run: slow, events: slow, journal: slow, commit: slow })) };
  const [a, b] = [await node('a', options), await node('b', options)];
  queue.next = 'b';
  const cancels = near === 'cancel' ? b : a;
  const resumes = near === 'resume' ? b : a;
  for (const moment of someMoments) {
    const run_id = await awaitingOn(a);
    const requests = { cancel: () => cancelOn(cancels, run_id), resume: () => resumeOn(resumes, run_id) };
    yield { a, b, run_id, answers: await race(first, { ...requests, wait: () => turns(moment) }) };
  }
}

const cancelOn = (served: Served, run_id: string): Promise<string> => requestOn(served, `/runs/${run_id}/cancel`);

const resumeOn = (served: Served, run_id: string): Promise<string> =>
  requestOn(served, `/runs/${run_id}`, { await_resume: reply, mode: 'async' });

/** The status of the run in the answer, or the reason of its error. */
async function requestOn({ app }: Served, url: string, payload?: object): Promise<string> {
  const response = await app.inject({ method: 'POST', url, ...(payload && { payload }) });
  const body = response.json();
  if (response.statusCode === 202) return body.status;
  expect(response.statusCode).toBe(409);
  return body.data.reason;
}
