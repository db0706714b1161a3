import { concat, concatMap, defer, map, merge, NEVER, of, race, Subject, take } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Agent, type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import { textOf as textOfMessage } from '../../src/core/parts.ts';
import type { Outcome, Write } from '../../src/core/store.ts';
import type { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { Hold } from '../support/hold.ts';
import { nodes } from '../support/nodes.ts';
import { PickyStore } from '../support/picky-store.ts';
import { ask, eventsOf, finished, type Served, serveApi } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

/** The status of the answer, and what it says: the run's status, or the reason of the error. */
async function give({ app }: Served, run_id: string, text: string): Promise<[number, string]> {
  const await_resume = { type: 'message', message: { parts: [{ content: text }] } };
  const payload = { mode: 'async', await_resume };
  const response = await app.inject({ method: 'POST', url: `/runs/${run_id}`, payload });
  const body = response.json();
  return [response.statusCode, body.status ?? body.data.reason];
}

const taken = [202, 'in-progress'];
const late = [409, 'not_awaiting'];

async function repliesIn(served: Served, run_id: string): Promise<string[]> {
  const events = await eventsOf(served, run_id);
  return events.flatMap((event) =>
    'run' in event && event.run.await_resume !== undefined ? [textOfMessage(event.run.await_resume.message)] : [],
  );
}

/** The questions that have a reply. */
async function answered(served: Served, run_id: string): Promise<string[]> {
  let question = '';
  const found: string[] = [];
  for (const event of await eventsOf(served, run_id)) {
    if (!('run' in event)) continue;
    const { await_request, await_resume } = event.run;
    if (await_request !== undefined) question = textOfMessage(await_request.message);
    else if (await_resume !== undefined) found.push(question);
  }
  return found;
}

async function turns(count: number): Promise<void> {
  for (let passed = 0; passed < count; passed += 1) await turn();
}

const asks = (durable: boolean, run: AgentFunction): Agent =>
  defineAgent({ name: 'asks', description: 'Asks while it works.' }, run, { durable });
const never = (): Promise<string> => new Promise(() => {});

/** Asks once, says what the test gives it, and stays on its node because of a step. */
function asksAndTalks(durable: boolean) {
  const said = new Subject<string>();
  const agent = asks(durable, (_, context) =>
    merge(
      durable ? context.step('work', never) : NEVER,
      said,
      context.await('Go on?').pipe(map(({ message }) => textOfMessage(message))),
    ),
  );
  return { agent, said };
}

async function awaitingOn(served: Served): Promise<string> {
  const { run_id, status } = await (await served.post('/runs', ask('asks'))).json();
  expect(status).toBe('awaiting');
  return run_id;
}

const has = (text: string, { journal = [] }: Write): boolean => journal.some((line) => line.includes(text));

/** Holds the commits with such a write, before the store takes them, or before it answers that it has. */
function holdCommits(
  store: MemoryStore,
  matches: (write: Write) => boolean,
  when: 'before' | 'after' = 'before',
): Hold {
  const hold = new Hold();
  const { commit } = store;
  store.commit = async (writes): Promise<Outcome[]> => {
    const isHeld = writes.some(matches);
    if (isHeld && when === 'before') await hold.come();
    const outcomes = await commit.call(store, writes);
    if (isHeld && when === 'after') await hold.come();
    return outcomes;
  };
  return hold;
}

/**
 * Two nodes, of which `b` executes the runs, until `takeOver` gives them to a third one. `reads.hold` holds what `b` reads
 * of runs.
 */
async function twoNodes(agent: Agent) {
  const { node, queue, store } = nodes([agent]);
  const reads = { hold: undefined as Hold | undefined };
  const ofB = new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        const answer = await Reflect.apply(value, target, args);
        if (name === 'run') await reads.hold?.come();
        return answer;
      };
    },
  });
  const [a, b] = [await node('a'), await node('b', { store: ofB })];
  queue.next = 'b';
  const takeOver = async (run_id: string): Promise<void> => {
    const epoch = (await store.run(run_id))?.epoch;
    queue.next = 'c';
    queue.expireLeases('b');
    await node('c');
    while ((await store.run(run_id))?.epoch === epoch) await turn();
    // Time for the notification, and for what the agent does in its next life.
    await turns(10);
  };
  return { a, b, store, reads, takeOver };
}

describe('a reply that meets another write of its run', () => {
  it('is taken, where a node takes the run over between its read and its write', async () => {
    const { a, store, takeOver } = await twoNodes(asksAndTalks(true).agent);
    const run_id = await awaitingOn(a);
    const hold = holdCommits(store, (write) => has('"reply"', write));
    const replies = [give(a, run_id, 'one'), give(a, run_id, 'two')];
    await hold.held();
    await takeOver(run_id);
    hold.letGo();
    expect((await Promise.all(replies)).sort()).toEqual([taken, late]);
    expect(await repliesIn(a, run_id)).toHaveLength(1);
  });

  it('is taken, where the node that has it in memory is fenced before it is durable', async () => {
    const { a, b, store, takeOver } = await twoNodes(asksAndTalks(true).agent);
    const run_id = await awaitingOn(a);
    const hold = holdCommits(store, (write) => has('"reply"', write));
    const one = give(b, run_id, 'one');
    await hold.held();
    const two = give(b, run_id, 'two');
    await takeOver(run_id);
    hold.letGo();
    expect([await one, await two].sort()).toEqual([taken, late]);
    expect(await repliesIn(a, run_id)).toHaveLength(1);
  });

  it('is taken, where its node is fenced while the store answers that it has it', async () => {
    const { a, b, store, takeOver } = await twoNodes(asksAndTalks(true).agent);
    const run_id = await awaitingOn(a);
    const hold = holdCommits(store, (write) => has('"reply"', write), 'after');
    const reply = give(b, run_id, 'one');
    await hold.held();
    await takeOver(run_id);
    hold.letGo();
    expect([await reply, await repliesIn(a, run_id)]).toEqual([taken, ['one']]);
  });

  it('is taken, where the store can never take the next write of the same commit', async () => {
    const { agent, said } = asksAndTalks(false);
    const store = new PickyStore(({ lines }) => lines.some((line) => line.includes('unstorable')));
    const served = await serveApi([agent], { store });
    const run_id = await awaitingOn(served);
    const hold = holdCommits(store, ({ lines }) => lines.some((line) => line.includes('word')));
    said.next('word');
    await hold.held();
    const reply = give(served, run_id, 'yes');
    await turns(10);
    said.next('unstorable'.repeat(50_000));
    hold.letGo();
    expect([await reply, await repliesIn(served, run_id)]).toEqual([taken, ['yes']]);
  });

  it('is taken for the question that is open, where the next one of its node was never durable', async () => {
    let changeQuestion = (): void => {};
    const changed = new Promise<string>((resolve) => (changeQuestion = () => resolve('changed')));
    let lives = 0;
    const agent = asks(true, (_, context) => {
      lives += 1;
      const work = lives === 1 ? changed : never();
      const one = context.await('Go on?').pipe(map(({ message }) => `one ${textOfMessage(message)}`));
      const schema = { type: 'number' };
      const two = context.await('How many?', { schema }).pipe(map(({ message }) => `two ${textOfMessage(message)}`));
      return concat(
        race(
          one,
          context.step('work', () => work),
        ),
        two,
      );
    });
    const { a, b, store, takeOver } = await twoNodes(agent);
    const run_id = await awaitingOn(a);
    const hold = holdCommits(store, (write) => has('"give"', write));
    changeQuestion();
    await hold.held();
    await turns(10);
    // It is no number, as the second question asks for.
    const reply = give(b, run_id, 'yes');
    await turns(10);
    await takeOver(run_id);
    hold.letGo();
    expect([await reply, await repliesIn(a, run_id)]).toEqual([taken, ['yes']]);
  });

  it.each([true, false])('is taken, where the run says something meanwhile (durable: %s)', async (durable) => {
    const { agent, said } = asksAndTalks(durable);
    const { a, b, store } = await twoNodes(agent);
    const run_id = await awaitingOn(a);
    said.next('word '.repeat(10));
    for (let word = 0; word < 500; word += 1) said.next('word ');
    while (((await store.run(run_id))?.last ?? 0) < 500) await turn();
    const { commit, events } = store;
    let lines = 0;
    store.events = async (...args) => {
      const batches = await events.apply(store, args);
      for (const batch of batches) lines += batch.lines.length;
      return batches;
    };
    let words = 20;
    store.commit = async (writes) => {
      if (words > 0 && writes.some((write) => has('yes', write))) {
        words -= 1;
        const last = (await store.run(run_id))?.last;
        said.next('word ');
        while ((await store.run(run_id))?.last === last) await turn();
      }
      return commit.call(store, writes);
    };
    expect([await give(a, run_id, 'yes'), words]).toEqual([taken, 0]);
    // The log was read once, and then only what was new.
    expect(lines).toBeLessThan(1_000);
    expect(await repliesIn(b, run_id)).toEqual(['yes']);
  });
});

/** Asks "Go on?", which its first life withdraws when the test says so. Then it asks another question in each life. */
function asksElse() {
  let withdraw = (): void => {};
  const withdrawn = new Promise<string>((resolve) => (withdraw = () => resolve('withdrawn')));
  let lives = 0;
  const agent = asks(true, (_, context) => {
    lives += 1;
    const isFirst = lives === 1;
    const replyTo = (question: string) => context.await(question).pipe(map(({ message }) => textOfMessage(message)));
    const step = context.step('work', () => (isFirst ? withdrawn : Promise.resolve('again')));
    return concat(
      race(replyTo('Go on?'), step),
      defer(() => replyTo(isFirst ? 'Name?' : 'Delete all?')),
    );
  });
  return { agent, withdraw: () => withdraw() };
}

async function askedElse(store: MemoryStore, run_id: string): Promise<void> {
  for (;;) {
    const lines = (await store.events(run_id, 0, 100)).flatMap((batch) => [...batch.lines]);
    if (lines.some((line) => line.includes('Delete all?'))) return;
    await turn();
  }
}

describe('a reply without an id', () => {
  it('that comes when no question is open is not given to the next one, where its node is fenced', async () => {
    let lives = 0;
    const agent = asks(true, (_, context) => {
      lives += 1;
      const work = lives === 1 ? never() : Promise.resolve('worked');
      const replyTo = (question: string) => context.await(question).pipe(map(({ message }) => textOfMessage(message)));
      return concat(
        replyTo('Name?'),
        context.step('work', () => work),
        replyTo('Delete all?'),
      );
    });
    const { a, b, store, takeOver } = await twoNodes(agent);
    const run_id = await awaitingOn(a);
    const hold = holdCommits(store, (write) => has('"begun"', write) && lives === 1);
    expect(await give(b, run_id, 'one')).toEqual(taken);
    await hold.held();
    const two = give(b, run_id, 'two');
    await turns(5);
    await takeOver(run_id);
    await askedElse(store, run_id);
    hold.letGo();
    expect((await two)[0]).toBe(409);
    expect(await repliesIn(a, run_id)).toEqual(['one']);
  });

  it('that comes when no question is open is not given to one that is asked while the run is looked up', async () => {
    const said = new Subject<string>();
    const agent = asks(false, (_, context) =>
      said.pipe(
        take(1),
        concatMap(() => context.await('Delete all?')),
        map(({ message }) => textOfMessage(message)),
      ),
    );
    const { a, b, store, reads } = await twoNodes(agent);
    const { run_id } = await (await a.post('/runs', ask('asks', 'hi', { mode: 'async' }))).json();
    while (!said.observed) await turn();
    const reading = new Hold();
    reads.hold = reading;
    const reply = give(b, run_id, 'yes');
    await reading.held();
    said.next('go');
    while ((await store.run(run_id))?.status !== 'awaiting') await turn();
    reading.letGo();
    expect(await reply).toEqual([409, 'conflict']);
    expect(await give(b, run_id, 'yes')).toEqual(taken);
  });

  // When the reply comes, the node's question is the first one, or one that was never durable.
  it.each(['Go on?', 'Name?'])('to %s is not given to another question that is asked later', async (question) => {
    const { agent, withdraw } = asksElse();
    const { a, b, store, reads, takeOver } = await twoNodes(agent);
    const run_id = await awaitingOn(a);
    const withdrawal = holdCommits(store, (write) => has('"withdrawn"', write));
    if (question === 'Name?') {
      withdraw();
      await withdrawal.held();
      await turns(10);
    }
    const reading = new Hold();
    reads.hold = reading;
    const reply = give(b, run_id, 'yes');
    await reading.held();
    if (question === 'Go on?') {
      withdraw();
      await withdrawal.held();
      await turns(10);
    }
    // The next read finds what the other node has asked.
    const later = new Hold();
    reads.hold = later;
    reading.letGo();
    await turns(10);
    await takeOver(run_id);
    await later.held();
    await askedElse(store, run_id);
    reads.hold = undefined;
    later.letGo();
    withdrawal.letGo();
    expect((await reply)[0]).toBe(409);
    expect(await answered(a, run_id)).toEqual([]);
  });
});

describe('a cancel of a run that has ended in memory', () => {
  it('ends it, where its node is fenced before the end is durable', async () => {
    let lives = 0;
    const agent = asks(true, () => {
      lives += 1;
      return lives === 1 ? of('done') : NEVER;
    });
    const { a, b, store, takeOver } = await twoNodes(agent);
    const hold = holdCommits(store, ({ row }) => row.status === 'completed');
    const { run_id } = await (await a.post('/runs', ask('asks', 'hi', { mode: 'async' }))).json();
    await hold.held();
    const cancelled = b.app.inject({ method: 'POST', url: `/runs/${run_id}/cancel` });
    await takeOver(run_id);
    hold.letGo();
    expect((await cancelled).statusCode).toBe(202);
    expect((await finished(a, run_id)).status).toBe('cancelled');
  });
});
