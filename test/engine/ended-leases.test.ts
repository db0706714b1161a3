import { firstValueFrom, Subject } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import type { Store } from '../../src/core/ports/store.ts';
import type { Limits } from '../../src/engine/limits.ts';
import { durable } from '../support/agents.ts';
import { deferred } from '../support/deferred.ts';
import { Hold } from '../support/hold.ts';
import { deaf, nodes } from '../support/nodes.ts';
import { ask, type Served } from '../support/serve.ts';
import { give, has, holdCommits, never, taken } from '../support/takeovers.ts';
import { turn, turns } from '../support/turn.ts';

const completedIn = async (store: Store, run_id: string): Promise<void> => {
  while ((await store.run(run_id))?.status !== 'completed') await turn();
};

/** The node `b`, which gets the next runs and hears of no other node. Its lease ends when the test says so, and may begin anew. */
async function leased({ node, queue, store }: ReturnType<typeof nodes>, limits: Partial<Limits> = {}) {
  let since: number | undefined = 0;
  const renewed = new Subject<void>();
  const dispatcher = {
    ...queue.dispatcher('b'),
    leasedSince: () => since,
    whenRenewed: () => firstValueFrom(renewed),
  };
  const { limits: ofDeaf, ...hears } = deaf(store);
  const b = await node('b', { ...hears, limits: { ...ofDeaf, ...limits }, dispatcher });
  queue.next = 'b';
  const endLease = (next?: number): void => {
    since = next;
    if (next !== undefined) renewed.next();
  };
  return { b, endLease };
}

/** A durable run on the node `b`, which hears of no other node. Its agent waits between two steps until it
 * is let on; or, with `holds`, the answer to the commit of the first step waits. */
async function runBetweenSteps({ holds = false } = {}) {
  const [waits, goesOn, fenced] = [deferred(), deferred(), deferred()];
  /** The lives of the run that have begun the second step. */
  const begun: number[] = [];
  let lives = 0;
  const pays = defineAgent(
    { name: 'pays', description: 'Looks, and pays.' },
    async (_, context) => {
      lives += 1;
      const life = lives;
      await context.step('look', () => 'all is well');
      if (life === 1 && !holds) {
        waits.resolve();
        await goesOn.promise;
      }
      return context.step('pay', () => {
        begun.push(life);
        return 'paid';
      });
    },
    { durable: true },
  );
  const shared = nodes([pays]);
  const { node, queue, store } = shared;
  const { commit } = store;
  store.commit = async (writes) => {
    const outcomes = await commit.call(store, writes);
    if (outcomes.includes('fenced')) fenced.resolve();
    if (holds && writes.some((write) => has('all is well', write))) {
      waits.resolve();
      await goesOn.promise;
    }
    return outcomes;
  };
  const { b, endLease } = await leased(shared);
  const { run_id } = await (await b.post('/runs', ask('pays', 'go', { mode: 'async' }))).json();
  await waits.promise;
  const completed = () => completedIn(store, run_id);
  return { begun, goOn: goesOn.resolve, fenced: fenced.promise, node, queue, store, endLease, completed };
}

it.each([
  ['may have ended', undefined, false],
  ['is a new one', 1, false],
  ['may have ended while a commit was under way', undefined, true],
  ['is a new one since a commit began', 1, true],
])('a node whose lease %s begins no work of a run that another node has taken over', async (_, lease, holds) => {
  const { begun, goOn, fenced, node, queue, endLease, completed } = await runBetweenSteps({ holds });
  endLease(lease);
  queue.next = 'c';
  queue.expireLeases('b');
  await node('c');
  await completed();
  goOn();
  await turns(10);
  // The next renewal of the lease.
  endLease(2);
  await fenced;
  await turns(10);
  expect(begun).toEqual([2]);
});

it('a node whose lease has ended goes on with a run that no other node has taken', async () => {
  const { begun, goOn, endLease, completed } = await runBetweenSteps();
  endLease(1);
  goOn();
  await completed();
  expect(begun).toEqual([1]);
});

it('a node whose lease has ended keeps a run that another node was about to take over', async () => {
  const { begun, goOn, node, queue, store, endLease, completed } = await runBetweenSteps();
  const takeOver = holdCommits(store, (write) => write.node === 'c');
  endLease(1);
  queue.next = 'c';
  queue.expireLeases('b');
  await node('c');
  await takeOver.held();
  goOn();
  await expect.poll(() => begun).toHaveLength(1);
  takeOver.letGo();
  await completed();
  await turns(10);
  expect(begun).toEqual([1]);
});

it('a node begins no work without a lease, and goes on when it has the next one', async () => {
  const { begun, goOn, endLease, completed } = await runBetweenSteps();
  endLease();
  goOn();
  await turns(20);
  expect(begun).toEqual([]);
  endLease(1);
  await completed();
  expect(begun).toEqual([1]);
});

it('a node begins no work after other work of the same turn that has held it for longer than its lease', async () => {
  const begun: string[] = [];
  let endLease = (_?: number): void => {};
  const both = durable('both', async (_, { step }) => {
    await step('look', () => 'all is well');
    const count = step('count', () => {
      endLease();
      return 'counted';
    });
    await Promise.all([count, step('pay', () => `${begun.push('pay')}`)]);
    return 'done';
  });
  const shared = nodes([both]);
  const node = await leased(shared);
  endLease = node.endLease;
  const { run_id } = await (await node.b.post('/runs', ask('both', 'go', { mode: 'async' }))).json();
  while (!(await shared.store.journal(run_id)).some((line) => line.includes('all is well'))) await turn();
  await turns(20);
  expect(begun).toEqual([]);
  endLease(1);
  await completedIn(shared.store, run_id);
  expect(begun).toEqual(['pay']);
});

describe('the agent of a run that another node has taken over', () => {
  /** Begins a run on `b`, and lets another node take it over when the lease of `b` has ended. */
  async function runOf(run: AgentFunction, limits: Partial<Limits> = {}) {
    const shared = nodes([durable('works', run)]);
    const { node, queue, store } = shared;
    const { b, endLease } = await leased(shared, limits);
    const { run_id } = await (await b.post('/runs', ask('works', 'go', { mode: 'async' }))).json();
    const takeOver = async (): Promise<Served> => {
      endLease();
      queue.next = 'c';
      queue.expireLeases('b');
      return node('c');
    };
    return { store, run_id, takeOver, endLease };
  }

  it('gets no value of its step any more', async () => {
    const did: string[] = [];
    const work = new Hold();
    let lives = 0;
    const { store, run_id, takeOver, endLease } = await runOf(async (_, context) => {
      lives += 1;
      const life = lives;
      try {
        await context.step('work', async () => life === 1 && work.come());
        did.push(`goes on in life ${life}`);
      } finally {
        did.push(`cleans up in life ${life}`);
      }
      return 'done';
    });
    await work.held();
    await takeOver();
    await completedIn(store, run_id);
    work.letGo();
    await turns(20);
    endLease(1);
    await turns(20);
    expect(did).toEqual(['goes on in life 2', 'cleans up in life 2']);
  });

  it('is not told there that what the other node has found is committed', async () => {
    const did: string[] = [];
    const begun = new Hold();
    let lives = 0;
    const { store, run_id, takeOver, endLease } = await runOf(async (_, context) => {
      lives += 1;
      const life = lives;
      async function* pay() {
        yield 'begun';
        if (life === 1) await begun.come();
        await context.committed();
        did.push(`pays in life ${life}`);
        yield 'paid';
      }
      return context.step('pay', pay, () => {
        did.push(`life ${life} does not know whether life 1 has paid`);
        return ['unknown'];
      });
    });
    await begun.held();
    while (!(await store.journal(run_id)).some((line) => line.includes('begun'))) await turn();
    await takeOver();
    await completedIn(store, run_id);
    begun.letGo();
    await turns(20);
    endLease(1);
    await turns(20);
    expect(did).toEqual(['life 2 does not know whether life 1 has paid']);
  });

  it('does not clean up there because its question has expired', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 120_000 });
    onTestFinished(() => void vi.useRealTimers());
    const did: string[] = [];
    let lives = 0;
    const { store, run_id, takeOver } = await runOf(
      async (_, context) => {
        lives += 1;
        const life = lives;
        try {
          await context.await('Go on?', { expiresIn: 60_000 });
        } finally {
          did.push(`cleans up in life ${life}`);
        }
        return 'done';
      },
      { sweepInterval: 5 },
    );
    while ((await store.run(run_id))?.status !== 'awaiting') await turn();
    const c = await takeOver();
    while (lives < 2) await turn();
    expect(await give(c, run_id, 'yes')).toEqual(taken);
    await completedIn(store, run_id);
    vi.useRealTimers();
    const sweeps = vi.spyOn(store, 'due');
    await expect.poll(() => sweeps.mock.calls.length).toBeGreaterThan(5);
    expect(did).toEqual(['cleans up in life 2']);
  });
});

it('a node whose lease ends while it reads a run leaves the run to the node that has taken it', async () => {
  let lives = 0;
  const work = new Hold();
  const works = durable('works', (_, context) => {
    lives += 1;
    return context.step('work', () => work.come().then(() => 'done'));
  });
  const shared = nodes([works]);
  const { node, queue, store } = shared;
  const read = new Hold();
  let next: Hold | undefined;
  const { run } = store;
  store.run = async (id) => {
    const held = next;
    next = undefined;
    await held?.come();
    return run.call(store, id);
  };
  const { b, endLease } = await leased(shared);
  queue.next = 'none';
  const { run_id } = await (await b.post('/runs', ask('works', 'go', { mode: 'async' }))).json();
  next = read;
  queue.next = 'b';
  queue.giveAgain(run_id);
  await read.held();
  endLease(1);
  queue.next = 'c';
  queue.expireLeases('b');
  await node('c');
  await work.held();
  read.letGo();
  await turns(20);
  work.letGo();
  await completedIn(store, run_id);
  expect(lives).toBe(1);
});

it('a node that takes a run over does no step whose result came after it had read the run', async () => {
  const worked: number[] = [];
  const look = new Hold();
  let lives = 0;
  const works = durable('works', async (_, context) => {
    lives += 1;
    const life = lives;
    await context.step('look', async () => {
      worked.push(life);
      await look.come();
      return 'all is well';
    });
    if (life === 1) await never();
    return 'done';
  });
  const shared = nodes([works]);
  const { node, queue, store } = shared;
  const { b } = await leased(shared);
  const { run_id } = await (await b.post('/runs', ask('works', 'go', { mode: 'async' }))).json();
  await look.held();
  const read = new Hold();
  const { journal } = store;
  store.journal = async (id) => {
    store.journal = journal;
    const found = await store.journal(id);
    await read.come();
    return found;
  };
  queue.next = 'c';
  queue.expireLeases('b');
  await node('c');
  await read.held();
  look.letGo();
  while (!(await store.journal(run_id)).some((line) => line.includes('all is well'))) await turn();
  read.letGo();
  await completedIn(store, run_id);
  expect(worked).toEqual([1]);
});
