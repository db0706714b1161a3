import { concat, merge } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { AgentFunction } from '../../src/core/agent.ts';
import { durable } from '../support/agents.ts';
import { deferred } from '../support/deferred.ts';
import { Hold } from '../support/hold.ts';
import { deaf, nodes } from '../support/nodes.ts';
import { RunFeed } from '../support/run-feed.ts';
import { ask, finished, type Served } from '../support/serve.ts';
import { asks, awaitingOn, give, has, holdCommits, never, replyTo, taken, workingOn } from '../support/takeovers.ts';
import { turn, turns } from '../support/turn.ts';

const session_id = '55555555-5555-4555-8555-555555555555';

/** Works until it is cancelled, and then cleans up until `cleanUp.letGo()`. */
function works(isDurable: boolean) {
  const begun: string[] = [];
  const ended: string[] = [];
  const cleanUp = new Hold();
  async function* run(...[[message], { signal, run_id }]: Parameters<AgentFunction>) {
    const name = message?.parts[0]?.content ?? '';
    begun.push(name);
    try {
      yield `${name} of ${run_id}`;
      if (name !== 'next') await new Promise((_, reject) => signal.addEventListener('abort', reject));
    } finally {
      if (name !== 'next') await cleanUp.come();
      ended.push(name);
    }
  }
  return { agent: durable('works', run, { durable: isDurable }), begun, ended, cleanUp };
}

const begin = async (served: Served, text: string, headers = {}): Promise<string> =>
  (await (await served.post('/runs', ask('works', text, { session_id, mode: 'async' }), headers)).json()).run_id;

/** The status of the answer, and that of the run in it, or the reason of the error. */
async function cancel({ app }: Served, run_id: string): Promise<[number, string]> {
  const answer = await app.inject({ method: 'POST', url: `/runs/${run_id}/cancel` });
  const body = answer.json();
  return [answer.statusCode, body.status ?? body.data.reason];
}

const cancelling = [202, 'cancelling'];
const statusOf = async (served: Served, run_id: string): Promise<string> =>
  (await (await served.get(`/runs/${run_id}`)).json()).status;

describe('a cancel of a run that another node executes', () => {
  it.each([
    { isDurable: true, worker: true },
    { isDurable: true, worker: false },
    { isDurable: false, worker: false },
  ])(
    'lets its agent clean up before the run ends, and before the next one of its session begins (%o)',
    async (options) => {
      const { agent, begun, ended, cleanUp } = works(options.isDurable);
      const { node, queue, store } = nodes([agent]);
      const [front, owner] = [await node('front', { worker: options.worker }), await node('owner')];
      queue.next = 'owner';
      const feed = await RunFeed.open(front.url);
      await feed.ready();
      const run_id = await begin(front, 'first');
      await expect.poll(() => begun).toEqual(['first']);
      const next = await begin(front, 'next', { 'if-busy': 'enqueue' });
      const { epoch = 0 } = (await store.run(run_id)) ?? {};
      expect(await cancel(front, run_id)).toEqual(cancelling);
      await cleanUp.held();
      // The next epoch is that of the status, by the node that executes the run.
      expect(await store.run(run_id)).toMatchObject({ status: 'cancelling', epoch: epoch + 1 });
      for (const one of [front, owner]) {
        expect(await statusOf(one, run_id)).toBe('cancelling');
        expect(await cancel(one, run_id)).toEqual(cancelling);
      }
      await feed.has(run_id, 'cancelling');
      await turns(20);
      expect([begun, ended]).toEqual([['first'], []]);
      cleanUp.letGo();
      expect((await finished(front, run_id)).status).toBe('cancelled');
      expect((await finished(front, next)).status).toBe('completed');
      expect([begun, ended]).toEqual([
        ['first', 'next'],
        ['first', 'next'],
      ]);
    },
  );

  it('lets its agent clean up before a run that interrupts it begins', async () => {
    const { agent, begun, ended, cleanUp } = works(true);
    const { node, queue, store } = nodes([agent]);
    const [front] = [await node('front', { worker: false }), await node('owner')];
    const run_id = await begin(front, 'first');
    await expect.poll(() => begun).toEqual(['first']);
    const next = await begin(front, 'next', { 'if-busy': 'interrupt' });
    expect(await store.run(run_id)).toMatchObject({ status: 'cancelling' });
    await cleanUp.held();
    await turns(20);
    expect([begun, ended]).toEqual([['first'], []]);
    cleanUp.letGo();
    expect((await finished(front, next)).status).toBe('completed');
    expect(queue.isHeld(run_id)).toBe(false);
  });

  it('is refused where the run ends first', async () => {
    const { promise: finished, resolve: finish } = deferred<string>();
    const { node, store } = nodes([asks(true, () => finished)]);
    const front = await node('front', { worker: false });
    await node('owner');
    const run_id = await workingOn(front, store);
    const hold = holdCommits(store, ({ row }) => row.status === 'completed');
    finish('done');
    await hold.held();
    const answer = cancel(front, run_id);
    while ((await store.journal(run_id)).length === 0) await turn();
    hold.letGo();
    expect(await answer).toEqual([409, 'already_final']);
  });

  it('is done by the node that takes the run over meanwhile, before its replay is over', async () => {
    const replayed = new Hold();
    let lives = 0;
    const agent = asks(true, async function* (_, context) {
      lives += 1;
      if (lives > 1) await replayed.come();
      yield 'word';
      await new Promise((_, reject) => context.signal.addEventListener('abort', reject));
    });
    const { node, queue, store } = nodes([agent]);
    const front = await node('front', { worker: false });
    await node('owner', deaf(store));
    const { run_id } = await (await front.post('/runs', ask('asks', 'hi', { mode: 'async' }))).json();
    await expect.poll(async () => (await store.run(run_id))?.last).toBeGreaterThan(2);
    queue.next = 'next';
    queue.expireLeases('owner');
    await node('next');
    await replayed.held();
    expect(await cancel(front, run_id)).toEqual(cancelling);
    expect(await store.run(run_id)).toMatchObject({ status: 'cancelling' });
    replayed.letGo();
    expect((await finished(front, run_id)).status).toBe('cancelled');
  });
});

describe('a cancel of a question that is asked on another node', () => {
  /** Asks two questions at its work on a node, which may hear of nothing; the front has clients that leave questions. */
  async function asksTwice(hears: boolean) {
    const agent = asks(true, (_, context) =>
      merge(context.step('work', never), concat(replyTo(context, 'Go on?'), replyTo(context, 'Really?'))),
    );
    const { node, store } = nodes([agent]);
    const front = await node('front', { worker: false, protocols: ['ag-ui'] });
    const owner = await node('owner', hears ? { limits: { cancelGrace: 1 } } : deaf(store));
    const run_id = await awaitingOn(front);
    const { last = 0, epoch } = (await store.run(run_id)) ?? {};
    const leave = async (): Promise<void> => {
      const resume = [{ interruptId: `${run_id}.${last}`, status: 'cancelled' }];
      const body = { threadId: 't', runId: 'left', messages: [], resume };
      await (await front.post('/ag-ui/asks', body)).text();
    };
    return { front, owner, store, run_id, epoch, leave };
  }

  it('cancels the run', async () => {
    const { front, store, run_id, epoch = 0, leave } = await asksTwice(true);
    await leave();
    expect((await finished(front, run_id)).status).toBe('cancelled');
    expect(await store.run(run_id)).toMatchObject({ epoch: epoch + 1 });
  });

  it.each(['before', 'after'] as const)(
    'cancels nothing where its reply comes just %s the cancel is forwarded',
    async (when) => {
      const { owner, store, run_id, epoch, leave } = await asksTwice(false);
      const hold = holdCommits(store, (write) => has('"forwarded"', write), when);
      const left = leave();
      await hold.held();
      expect(await give(owner, run_id, 'yes')).toEqual(taken);
      await expect.poll(async () => (await store.run(run_id))?.status).toBe('awaiting');
      hold.letGo();
      await left;
      expect(await store.run(run_id)).toMatchObject({ status: 'awaiting', epoch });
    },
  );
});

describe('a cancel of a run whose node does not answer', () => {
  it.each([true, false])(
    'is answered in time, and the run ends when the lease is gone (durable: %s)',
    async (isDurable) => {
      const { agent, begun } = works(isDurable);
      const { node, queue, store } = nodes([agent]);
      const front = await node('front', { worker: false, limits: { requestTimeout: 100 } });
      await node('owner', deaf(store));
      const run_id = await begin(front, 'first');
      await expect.poll(() => begun).toEqual(['first']);
      const next = await begin(front, 'next', { 'if-busy': 'enqueue' });
      const { epoch = 0 } = (await store.run(run_id)) ?? {};
      for (let times = 0; times < 2; times += 1) expect(await cancel(front, run_id)).toEqual(cancelling);
      expect(await store.run(run_id)).toMatchObject({ status: 'cancelling', epoch: epoch + 1 });
      await turns(20);
      expect([await statusOf(front, run_id), queue.holder(run_id), begun]).toEqual(['cancelling', 'owner', ['first']]);
      queue.next = 'another';
      queue.expireLeases('owner');
      await node('another', { limits: { cancelGrace: 1 } });
      expect((await finished(front, run_id)).status).toBe('cancelled');
      expect((await finished(front, next)).status).toBe('completed');
    },
  );

  it('is answered after `cancelGrace`, where that is shorter than `requestTimeout`', async () => {
    const { agent, begun } = works(true);
    const { node, store } = nodes([agent]);
    const front = await node('front', { worker: false, limits: { requestTimeout: 600_000, cancelGrace: 100 } });
    await node('owner', deaf(store));
    const run_id = await begin(front, 'first');
    await expect.poll(() => begun).toEqual(['first']);
    expect(await cancel(front, run_id)).toEqual(cancelling);
  });

  it('waits for all nodes at once, where a run interrupts many', async () => {
    const { agent, begun } = works(true);
    const { node, store } = nodes([agent]);
    const front = await node('front', { worker: false, limits: { requestTimeout: 1_000 } });
    await node('owner', deaf(store));
    for (let index = 0; index < 20; index += 1) await begin(front, 'first', { 'if-busy': 'parallel' });
    await expect.poll(() => begun).toHaveLength(20);
    const writes: string[] = [];
    const { commit } = store;
    store.commit = async (all) => {
      for (const write of all) {
        if (has('"forwarded"', write)) writes.push('forwarded');
        else if (write.row.status === 'cancelling') writes.push('cancelling');
      }
      return commit.call(store, all);
    };
    const { status } = await front.post('/runs', ask('works', 'next', { session_id, mode: 'async' }), {
      'if-busy': 'interrupt',
    });
    expect(status).toBe(202);
    expect(writes.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 'forwarded'));
    expect(writes.filter((one) => one === 'cancelling')).toHaveLength(20);
  });
});

describe('a cancel of a run that is in the store alone', () => {
  it('is answered at once where it rests, and the next node lets its agent clean up', async () => {
    const { node, store } = nodes([asks(true, (_, context) => replyTo(context, 'Go on?'))]);
    const front = await node('front', { worker: false });
    const owner = await node('owner', { limits: { passivateAfter: 1, sweepInterval: 1 } });
    const run_id = await awaitingOn(front);
    await expect.poll(async () => (await store.run(run_id))?.rests_at).toBeTypeOf('string');
    await owner.app.close();
    expect(await cancel(front, run_id)).toEqual(cancelling);
    expect(await store.run(run_id)).toMatchObject({ status: 'cancelling', rests_at: null });
    expect(await cancel(front, run_id)).toEqual(cancelling);
    await node('next');
    await expect.poll(async () => (await store.run(run_id))?.status).toBe('cancelled');
    expect(await cancel(front, run_id)).toEqual([409, 'already_final']);
  });

  it('ends it at once where it is queued, or no node has begun it', async () => {
    const { node, queue, store } = nodes([works(true).agent]);
    const front = await node('front', { worker: false });
    queue.next = 'nothing';
    const created = await begin(front, 'first');
    const queued = await begin(front, 'next', { 'if-busy': 'enqueue' });
    for (const run_id of [queued, created]) {
      expect(await cancel(front, run_id)).toEqual(cancelling);
      expect(await store.run(run_id)).toMatchObject({ status: 'cancelled' });
    }
  });
});
