import { concat, concatMap, defer, merge, NEVER, race, Subject, switchMap, take } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { replyTarget } from '../../src/engine/runs/reply-target.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { engineOf } from '../support/engine.ts';
import { Hold } from '../support/hold.ts';
import { answerOf, begin } from '../support/lives.ts';
import { ask } from '../support/serve.ts';
import {
  answered,
  asked,
  asks,
  awaitingOn,
  failOnce,
  give,
  has,
  holdCommits,
  late,
  never,
  repliesIn,
  replyTo,
  taken,
  twoNodes,
  workingOn,
} from '../support/takeovers.ts';
import { turn, turns } from '../support/turn.ts';

/** Asks "Go on?", which its first life withdraws when the test says so. Then it asks another question in each life. */
function asksElse() {
  let withdraw = (): void => {};
  const withdrawn = new Promise<string>((resolve) => (withdraw = () => resolve('withdrawn')));
  let lives = 0;
  const agent = asks(true, (_, context) => {
    lives += 1;
    const isFirst = lives === 1;
    const step = context.step('work', () => (isFirst ? withdrawn : Promise.resolve('again')));
    return concat(
      race(replyTo(context, 'Go on?'), step),
      defer(() => replyTo(context, isFirst ? 'Name?' : 'Delete all?')),
    );
  });
  return { agent, withdraw: () => withdraw() };
}

/** Works for ever in its first life, and asks in the next one. */
function worksThenAsks(question: string) {
  let lives = 0;
  return asks(true, (_, context) => {
    lives += 1;
    const work = lives === 1 ? never() : Promise.resolve('worked');
    return concat(
      context.step('work', () => work),
      replyTo(context, question),
    );
  });
}

const yes = { type: 'message', message: { parts: [{ content: 'yes' }] } };

describe('a reply without an id', () => {
  it('that comes when no question is open is not given to the next one, where its node is fenced', async () => {
    let lives = 0;
    const agent = asks(true, (_, context) => {
      lives += 1;
      const work = lives === 1 ? never() : Promise.resolve('worked');
      return concat(
        replyTo(context, 'Name?'),
        context.step('work', () => work),
        replyTo(context, 'Delete all?'),
      );
    });
    const { a, b, store, takeOver } = await twoNodes(agent);
    const run_id = await awaitingOn(a);
    const hold = holdCommits(store, (write) => has('"answered"', write) && lives === 1);
    expect(await give(b, run_id, 'one')).toEqual(taken);
    await hold.held();
    const two = give(b, run_id, 'two');
    await turns(5);
    await takeOver(run_id);
    await asked(store, run_id, 'Delete all?');
    hold.letGo();
    expect((await two)[0]).toBe(409);
    expect(await repliesIn(a, run_id)).toEqual(['one']);
  });

  it('that comes when no question is open is not given to one that is asked while the run is looked up', async () => {
    const said = new Subject<string>();
    const agent = asks(false, (_, context) =>
      said.pipe(
        take(1),
        concatMap(() => replyTo(context, 'Delete all?')),
      ),
    );
    const { a, b, store, reads } = await twoNodes(agent);
    const { run_id } = await (await a.post('/runs', ask('asks', 'hi', { mode: 'async' }))).json();
    while (!said.observed) await turn();
    const reading = new Hold();
    reads.hold = { name: 'run', hold: reading };
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
    const change = async (): Promise<void> => {
      withdraw();
      await withdrawal.held();
      await turns(10);
    };
    if (question === 'Name?') await change();
    const reading = new Hold();
    reads.hold = { name: 'run', hold: reading };
    const reply = give(b, run_id, 'yes');
    await reading.held();
    if (question === 'Go on?') await change();
    // The next read finds what the other node has asked.
    const later = new Hold();
    reads.hold = { name: 'run', hold: later };
    reading.letGo();
    await turns(10);
    await takeOver(run_id);
    await later.held();
    await asked(store, run_id, 'Delete all?');
    reads.hold = undefined;
    later.letGo();
    withdrawal.letGo();
    expect((await reply)[0]).toBe(409);
    expect(await answered(a, run_id)).toEqual([]);
  });

  it('that comes while its run is replayed, when no question is open, is not given to the next one', async () => {
    let lives = 0;
    const replayed = new Subject<void>();
    const agent = asks(true, (_, context) => {
      lives += 1;
      const isFirst = lives === 1;
      const main = concat(
        replyTo(context, 'Go on?'),
        defer(() => (isFirst ? NEVER : replyTo(context, 'Delete all?'))),
      );
      return merge(context.step('work', never), isFirst ? main : replayed.pipe(switchMap(() => main)));
    });
    const { a, b, takeOver } = await twoNodes(agent);
    const run_id = await awaitingOn(a);
    expect(await give(b, run_id, 'yes')).toEqual(taken);
    const c = await takeOver(run_id);
    const second = give(c, run_id, 'yes again');
    await turns(20);
    replayed.next();
    expect((await second)[0]).toBe(409);
    expect(await answered(a, run_id)).toEqual(['Go on?']);
  });

  it.each([true, false])(
    'with a key, that comes when no question is open, is not given to one that is asked during the lookup (durable: %s)',
    async (durable) => {
      let begin = (): void => {};
      const begun = new Promise<string>((resolve) => (begin = () => resolve('begun')));
      const agent = asks(durable, (_, context) =>
        concat(durable ? context.step('work', () => begun) : begun, replyTo(context, 'Delete all?')),
      );
      const { a, b, store, reads } = await twoNodes(agent, 'a');
      const { run_id } = await (await b.post('/runs', ask('asks', 'hi', { mode: 'async' }))).json();
      while ((await store.run(run_id))?.status !== 'in-progress') await turn();
      const lookup = new Hold();
      reads.hold = { name: 'key', hold: lookup };
      const reply = give(a, run_id, 'yes', { 'idempotency-key': 'key' });
      await lookup.held();
      await turns(20);
      begin();
      while ((await store.run(run_id))?.status !== 'awaiting') await turn();
      reads.hold = undefined;
      lookup.letGo();
      expect((await reply)[0]).toBe(409);
      expect(await answered(a, run_id)).toEqual([]);
    },
  );

  it.each(['run', 'key'])(
    'that comes when no question is open is not given to the next one, where the run is taken over while its %s is read',
    async (name) => {
      const { a, b, store, reads, takeOver } = await twoNodes(worksThenAsks('Delete all?'));
      const run_id = await workingOn(a, store);
      const reading = new Hold();
      reads.hold = { name, hold: reading };
      const reply = give(b, run_id, 'yes', name === 'key' ? { 'idempotency-key': 'key' } : {});
      await reading.held();
      reads.hold = undefined;
      await turns(10);
      await takeOver(run_id);
      await asked(store, run_id, 'Delete all?');
      reading.letGo();
      expect((await reply)[0]).toBe(409);
      expect(await answered(a, run_id)).toEqual([]);
    },
  );

  it('with a key, is not given to a question that is asked during the lookup, where the store could not be read before', async () => {
    let begin = (): void => {};
    const begun = new Promise<string>((resolve) => (begin = () => resolve('begun')));
    const agent = asks(true, (_, context) =>
      concat(
        context.step('work', () => begun),
        replyTo(context, 'Delete all?'),
      ),
    );
    const { a, b, store, reads } = await twoNodes(agent, 'a');
    const run_id = await workingOn(b, store);
    const lookup = new Hold();
    reads.hold = { name: 'key', hold: lookup };
    failOnce(store);
    const reply = give(a, run_id, 'yes', { 'idempotency-key': 'key' });
    await lookup.held();
    begin();
    await asked(store, run_id, 'Delete all?');
    reads.hold = undefined;
    lookup.letGo();
    expect(await reply).toEqual([503, 'store_unavailable']);
    expect(await answered(a, run_id)).toEqual([]);
    expect(await give(a, run_id, 'yes', { 'idempotency-key': 'key' })).toEqual(taken);
  });

  it('with a key, leaves a run alone that is cancelled during the lookup', async () => {
    let stop = (): void => {};
    const stopped = new Promise<string>((resolve) => (stop = () => resolve('stopped')));
    const agent = asks(false, (_, context) =>
      merge(
        replyTo(context, 'Go on?'),
        context.step('work', () => stopped),
      ),
    );
    const { a, b, store, reads } = await twoNodes(agent, 'a');
    const run_id = await awaitingOn(a);
    const lookup = new Hold();
    reads.hold = { name: 'key', hold: lookup };
    const reply = give(a, run_id, 'yes', { 'idempotency-key': 'key' });
    await lookup.held();
    await b.post(`/runs/${run_id}/cancel`, {});
    while ((await store.run(run_id))?.status !== 'cancelling') await turn();
    reads.hold = undefined;
    lookup.letGo();
    expect(await reply).toEqual(late);
    expect((await store.run(run_id))?.status).toBe('cancelling');
    stop();
  });

  describe.each<Record<string, string>>([{}, { 'idempotency-key': 'key' }])(
    'to a question that its node knows (%o)',
    (headers) => {
      function asksAgain() {
        let lives = 0;
        return asks(true, (_, context) => {
          lives += 1;
          const work = lives === 1 ? never() : Promise.resolve('withdrawn');
          return concat(
            race(
              replyTo(context, 'Go on?'),
              context.step('work', () => work),
            ),
            replyTo(context, 'Delete all?'),
          );
        });
      }

      it('is not given to the next one, where the run is taken over while its row is read', async () => {
        const { a, b, store, takeOver } = await twoNodes(asksAgain());
        const run_id = await awaitingOn(b);
        await turns(10);
        const reading = new Hold();
        const { run } = store;
        store.run = async (id) => {
          await reading.come();
          return run.call(store, id);
        };
        const reply = give(b, run_id, 'yes', headers);
        await reading.held();
        store.run = run;
        await takeOver(run_id);
        await asked(store, run_id, 'Delete all?');
        reading.letGo();
        expect(await reply).toEqual([409, 'question_mismatch']);
        expect(await answered(a, run_id)).toEqual([]);
      });

      // It may as well be for the older one: the node has shown it until now.
      it('is refused where another node has asked the next one unheard, and taken when it is sent again', async () => {
        const { a, b, store, takeOver } = await twoNodes(asksAgain());
        const run_id = await awaitingOn(a);
        await turns(10);
        store.losesNotifications = true;
        await takeOver(run_id);
        await asked(store, run_id, 'Delete all?');
        expect(await give(b, run_id, 'yes', headers)).toEqual([409, 'question_mismatch']);
        // The reply is forwarded to the node that has the run.
        store.losesNotifications = false;
        expect(await give(b, run_id, 'yes', headers)).toEqual(taken);
        expect(await answered(a, run_id)).toEqual(['Delete all?']);
      });
    },
  );

  it('is given to the question of the store, where its node knew of none, and has lost the run unheard', async () => {
    const { a, b, store, takeOver } = await twoNodes(worksThenAsks('Go on?'));
    const run_id = await workingOn(a, store);
    store.losesNotifications = true;
    await takeOver(run_id);
    await asked(store, run_id, 'Go on?');
    store.losesNotifications = false;
    expect(await give(b, run_id, 'yes')).toEqual(taken);
    expect(await answered(a, run_id)).toEqual(['Go on?']);
  });

  it('to a run with a cancel that the store never takes is given to its question', async () => {
    const agent = asks(true, (_, context) => merge(context.step('work', never), replyTo(context, 'Go on?')));
    const store = new MemoryStore();
    const engine = await engineOf(
      [agent],
      store,
      { storeTimeout: 100, requestTimeout: 600_000 },
      { onFailure: () => {} },
    );
    const run_id = await begin(engine, 'asks');
    while ((await store.run(run_id))?.status !== 'awaiting') await turn();
    await turns(10);
    const { commit } = store;
    store.commit = async (writes) => {
      if (writes.some(({ row }) => row.status.startsWith('cancel'))) throw new Error('disk full');
      return commit.call(store, writes);
    };
    const cancel = answerOf(engine.cancel(run_id));
    await turns(5);
    const reply = answerOf(engine.resume(run_id, yes).then(({ run }) => run));
    expect(await cancel).toBe('store_unavailable');
    expect(await reply).toBe('in-progress');
  });

  it('to a run that works is refused at once by a process that has the run alone, while its store does not answer', async () => {
    const agent = asks(true, (_, context) => context.step('work', never));
    const store = new MemoryStore();
    const engine = await engineOf([agent], store);
    const run_id = await begin(engine, 'asks');
    while ((await store.run(run_id))?.status !== 'in-progress') await turn();
    await turns(10);
    const { run } = store;
    store.run = () => new Promise(() => {});
    expect(await answerOf(engine.resume(run_id, yes).then((accepted) => accepted.run))).toBe('not_awaiting');
    store.run = run;
  });
});

it('a reply without an id to a run that is not in memory has the store read before anything is waited for', () => {
  let reads = 0;
  const read = (): Promise<never> => {
    reads += 1;
    return new Promise(() => {});
  };
  expect(replyTarget(undefined, undefined, read).asked).toBeUndefined();
  expect(replyTarget('1', undefined, read).stored).toBeUndefined();
  expect(reads).toBe(1);
});
