import { concat, merge } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { deaf, nodes } from '../support/nodes.ts';
import {
  answered,
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
} from '../support/takeovers.ts';
import { turn, turns } from '../support/turn.ts';

/** Asks beside a step, and counts how often the work of the step begins. */
function asksAtWork() {
  const work = { begun: 0, finish: (): void => {} };
  const done = new Promise<string>((resolve) => (work.finish = () => resolve(' done')));
  const step = (): Promise<string> => {
    work.begun += 1;
    return done;
  };
  const agent = asks(true, (_, context) => merge(context.step('work', step), replyTo(context, 'Go on?')));
  return { agent, work };
}

/** Asks once, and leaves memory. */
const rests = asks(true, (_, context) => replyTo(context, 'Go on?'));
const restsSoon = { limits: { passivateAfter: 1, sweepInterval: 1 } };

describe('a reply to a run that another node has in memory', () => {
  it.each([true, false])('leaves its running step running (the node executes runs itself: %s)', async (worker) => {
    const { agent, work } = asksAtWork();
    const { node, queue, store } = nodes([agent]);
    const [front, owner] = [await node('front', { worker }), await node('owner')];
    queue.next = 'owner';
    const run_id = await awaitingOn(front);
    const { epoch } = (await store.run(run_id)) ?? {};
    expect(await give(front, run_id, 'yes')).toEqual(taken);
    expect(await repliesIn(owner, run_id)).toEqual(['yes']);
    work.finish();
    await expect.poll(() => store.run(run_id)).toMatchObject({ status: 'completed', epoch });
    expect([work.begun, queue.holder(run_id)]).toEqual([1, undefined]);
  });

  it('is refused where the reply of another node was first', async () => {
    const { node, queue } = nodes([asksAndTalks(true).agent]);
    const [a, b] = [await node('a'), await node('b')];
    await node('owner');
    queue.next = 'owner';
    const run_id = await awaitingOn(a);
    const answers = await Promise.all([give(a, run_id, 'one'), give(b, run_id, 'two')]);
    expect(answers.toSorted()).toEqual([taken, late]);
    expect(await repliesIn(a, run_id)).toEqual([answers[0]?.[0] === 202 ? 'one' : 'two']);
  });

  it('and does not answer, ends when the node that has the request stops', async () => {
    const { node, queue, store } = nodes([rests]);
    const front = await node('front', { worker: false, limits: { requestTimeout: 600_000 } });
    await node('owner', deaf(store));
    const run_id = await awaitingOn(front);
    const reply = front.post(`/runs/${run_id}`, { await_resume: { type: 'message', message: { parts: [] } } });
    while ((await store.journal(run_id)).length === 0) await turn();
    await turns(10);
    await front.app.close();
    expect(await (await reply).json()).toMatchObject({ data: { reason: 'stopping' } });
    expect(queue.holder(run_id)).toBe('owner');
  });

  it('is found by a poll where its notification is lost', async () => {
    const { node, queue, store } = nodes([asksAndTalks(true).agent]);
    const polls = { limits: { pollInterval: 20 } };
    const [a] = [await node('a', polls), await node('owner', polls)];
    queue.next = 'owner';
    const run_id = await awaitingOn(a);
    store.losesNotifications = true;
    expect(await give(a, run_id, 'yes')).toEqual(taken);
    expect(await repliesIn(a, run_id)).toEqual(['yes']);
  });
});

describe('a reply to a run that rests', () => {
  it('is taken in the store, where no node executes runs', async () => {
    const { node, queue, store } = nodes([rests]);
    const [front, owner] = [await node('front', { worker: false }), await node('owner', restsSoon)];
    const run_id = await awaitingOn(front);
    await expect.poll(async () => (await store.run(run_id))?.rests_at).toBeTypeOf('string');
    await owner.app.close();
    queue.next = 'next';
    expect(await give(front, run_id, 'yes')).toEqual(taken);
    expect(await store.run(run_id)).toMatchObject({ status: 'in-progress', rests_at: null });
    await node('next');
    await expect.poll(() => store.run(run_id)).toMatchObject({ status: 'completed' });
    expect(await repliesIn(front, run_id)).toEqual(['yes']);
  });

  it.each(['before', 'after'] as const)(
    'is taken, where the run comes to rest just %s it is forwarded',
    async (when) => {
      const { node, store } = nodes([rests]);
      const forward = holdCommits(store, (write) => has('"forwarded"', write), when);
      const rest = holdCommits(store, ({ row }) => row.rests_at !== null);
      const front = await node('front', { worker: false });
      await node('owner', restsSoon);
      const run_id = await awaitingOn(front);
      await rest.held();
      const reply = give(front, run_id, 'yes');
      await forward.held();
      rest.letGo();
      await expect.poll(async () => (await store.run(run_id))?.rests_at).toBeTypeOf('string');
      forward.letGo();
      expect(await reply).toEqual(taken);
      await expect.poll(() => store.run(run_id)).toMatchObject({ status: 'completed' });
      expect(await repliesIn(front, run_id)).toEqual(['yes']);
    },
  );
});

describe('a reply that is forwarded to a node which dies', () => {
  const key = { 'idempotency-key': 'key' };

  it('is delivered by the next node, and found by the same request', async () => {
    const { agent } = asksAndTalks(true);
    const { node, queue, store } = nodes([agent]);
    const front = await node('front', { worker: false, limits: { requestTimeout: 100 } });
    await node('owner', deaf(store));
    const run_id = await awaitingOn(front);
    expect(await give(front, run_id, 'yes', key)).toEqual([503, 'node_unresponsive']);
    queue.next = 'next';
    queue.expireLeases('owner');
    await node('next', { limits: { pollInterval: 86_400_000 } });
    await expect.poll(() => store.run(run_id)).toMatchObject({ status: 'in-progress' });
    expect(await repliesIn(front, run_id)).toEqual(['yes']);
    expect(await give(front, run_id, 'yes', key)).toEqual(taken);
    expect(await repliesIn(front, run_id)).toEqual(['yes']);
  });

  it('is delivered once, where it was sent again meanwhile', async () => {
    const { node, queue, store } = nodes([asksAndTalks(true).agent]);
    const front = await node('front', { worker: false, limits: { requestTimeout: 100 } });
    await node('owner', deaf(store));
    const run_id = await awaitingOn(front);
    for (let times = 0; times < 2; times += 1)
      expect(await give(front, run_id, 'yes', key)).toEqual([503, 'node_unresponsive']);
    queue.next = 'next';
    queue.expireLeases('owner');
    await node('next');
    await expect.poll(() => give(front, run_id, 'yes', key)).toEqual(taken);
    expect(await repliesIn(front, run_id)).toEqual(['yes']);
  });

  it('gets its answer when the next node delivers it, also where that node has got the request', async () => {
    for (const next of ['front', 'next']) {
      const { node, queue, store } = nodes([asksAndTalks(true).agent]);
      const front = await node('front', { limits: { requestTimeout: 600_000, pollInterval: 86_400_000 } });
      await node('owner', deaf(store));
      await node('next');
      queue.next = 'owner';
      const run_id = await awaitingOn(front);
      const reply = give(front, run_id, 'yes');
      while ((await store.journal(run_id)).every((line) => !line.includes('"forwarded"'))) await turn();
      queue.next = next;
      queue.expireLeases('owner');
      expect(await reply).toEqual(taken);
      expect(await repliesIn(front, run_id)).toEqual(['yes']);
    }
  });

  it('is not delivered to the next question, where another one was forwarded first', async () => {
    let withdraw = (): void => {};
    const withdrawn = new Promise<string>((resolve) => (withdraw = () => resolve('')));
    let lives = 0;
    const agent = asks(true, (_, context) => {
      lives += 1;
      const isFirst = lives === 1;
      const question = replyTo(context, 'Go on?');
      const step = context.step('work', () => (isFirst ? never() : withdrawn));
      return concat(merge(question, step), replyTo(context, 'Delete all?'));
    });
    const { node, queue, store } = nodes([agent]);
    const front = await node('front', { worker: false, limits: { requestTimeout: 100 } });
    await node('owner', deaf(store));
    const run_id = await awaitingOn(front);
    expect(await give(front, run_id, 'one')).toEqual([503, 'node_unresponsive']);
    expect(await give(front, run_id, 'two')).toEqual([503, 'node_unresponsive']);
    queue.next = 'next';
    queue.expireLeases('owner');
    await node('next');
    await expect.poll(() => repliesIn(front, run_id)).toEqual(['one']);
    withdraw();
    await expect.poll(() => store.run(run_id)).toMatchObject({ status: 'awaiting' });
    await turns(20);
    expect(await answered(front, run_id)).toEqual(['Go on?']);
  });
});
