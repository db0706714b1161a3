import { concat, merge, NEVER, of, race, Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../src/core/ports/run-store.ts';
import { PickyStore } from '../support/picky-store.ts';
import { ask, finished, serveApi } from '../support/serve.ts';
import {
  asks,
  asksAndTalks,
  awaitingOn,
  give,
  has,
  holdCommits,
  late,
  never,
  repliesIn,
  replyTo,
  taken,
  twoNodes,
} from '../support/takeovers.ts';
import { turn, turns } from '../support/turn.ts';

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

  // JSON of an event escapes the second text.
  it.each(['one', 'two\u2028lines'])(
    'is taken, where its node is fenced while the store answers it: %s',
    async (text) => {
      const { a, b, store, takeOver } = await twoNodes(asksAndTalks(true).agent);
      const run_id = await awaitingOn(a);
      const hold = holdCommits(store, (write) => has('"reply"', write), 'after');
      const reply = give(b, run_id, text);
      await hold.held();
      await takeOver(run_id);
      hold.letGo();
      expect([await reply, await repliesIn(a, run_id)]).toEqual([taken, [text]]);
    },
  );

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
      const step = context.step('work', () => work);
      return concat(
        race(replyTo(context, 'Go on?'), step),
        replyTo(context, 'How many?', { schema: { type: 'number' } }),
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

describe.each([true, false])('a reply that the store does not take (durable: %s)', (durable) => {
  /** A question of a run on node `b`; the store answers each reply with `outcome`, until `takeReplies` is called. */
  async function refusingStore(outcome: Outcome) {
    const served = await twoNodes(asksAndTalks(durable).agent, 'b', { limits: { requestTimeout: 1_000 } });
    const run_id = await awaitingOn(served.a);
    const { commit } = served.store;
    served.store.commit = async (writes) =>
      writes.some((write) => has('"reply"', write)) ? writes.map(() => outcome) : commit.call(served.store, writes);
    const takeReplies = (): void => {
      served.store.commit = commit;
    };
    return { ...served, run_id, takeReplies };
  }

  it('is unavailable, where other writes come before it for as long as a request may take', async () => {
    const { a, run_id, takeReplies } = await refusingStore('fenced');
    expect(await give(a, run_id, 'early')).toEqual([503, 'store_unavailable']);
    takeReplies();
    expect(await give(a, run_id, 'yes')).toEqual(taken);
    expect(await repliesIn(a, run_id)).toEqual(['yes']);
  });

  it('has failed, where the store can never take it, and the question stays open', async () => {
    const { a, run_id, takeReplies } = await refusingStore({ rejected: new Error('too long for a column') });
    expect(await give(a, run_id, 'long')).toEqual([500, 'store_failed']);
    takeReplies();
    expect(await give(a, run_id, 'yes')).toEqual(taken);
    expect(await repliesIn(a, run_id)).toEqual(['yes']);
  });
});

it('a reply that the question does not take is refused at once, while the store takes a word of the run', async () => {
  const said = new Subject<string>();
  const agent = asks(true, (_, context) => merge(said, replyTo(context, 'How many?', { schema: { type: 'number' } })));
  const { a, b, store } = await twoNodes(agent);
  const run_id = await awaitingOn(a);
  const hold = holdCommits(store, ({ lines }) => lines.some((line) => line.includes('word')));
  said.next('word');
  await hold.held();
  expect(await give(b, run_id, 'no number')).toEqual([422, 'validation_failed']);
  hold.letGo();
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
