import { from, ignoreElements, map, merge, NEVER, of, Subject, timer } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Agent } from '../../src/core/agent.ts';
import { textOf as textOfMessage } from '../../src/core/parts.ts';
import type { Dispatcher } from '../../src/engine/dispatch/dispatcher.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Limits } from '../../src/engine/limits.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { durable } from '../support/agents.ts';
import { faulty, newPlan } from '../support/faulty-store.ts';
import { Hold } from '../support/hold.ts';
import { begin, begun, runOf, toTheEnd } from '../support/lives.ts';
import { deaf, nodes } from '../support/nodes.ts';
import { ask, finished, type Served } from '../support/serve.ts';
import { turn, turns } from '../support/turn.ts';

const reply = { type: 'message' as const, message: { parts: [{ content: 'yes ' }] } };

/** A process that dies when an agent says so, and starts again with what its disk had at that moment. */
class Lives {
  readonly #agents: Agent[];
  readonly #limits: Partial<Limits>;
  #engine: Engine | undefined;
  store = new RecordingStore();
  /** The commits that the store had when the process died. */
  #diedAt: number | undefined;
  deaths = 0;

  constructor(agents: (die: () => void) => Agent[], limits: Partial<Limits> = {}) {
    this.#agents = agents(() => this.die());
    this.#limits = { attempts: 3, sweepInterval: 2, ...limits };
  }

  get engine(): Engine {
    if (this.#engine === undefined) throw new Error('the process was not started');
    return this.#engine;
  }

  get isDead(): boolean {
    return this.#diedAt !== undefined;
  }

  readonly die = (): void => {
    this.#diedAt ??= this.store.commits.length;
  };

  async start(): Promise<void> {
    this.#engine = await startEngine(this.#agents, this.store, this.#limits);
  }

  async restart(): Promise<void> {
    this.die();
    const before = this.#engine;
    const disk = new RecordingStore();
    for (const writes of this.store.commits.slice(0, this.#diedAt)) await disk.commit(writes);
    this.deaths += 1;
    this.store = disk;
    this.#diedAt = undefined;
    await Promise.all([before?.stop(), this.start()]);
  }

  /** Restarts the process after each of its deaths, until a run is final. */
  async untilFinal(run_id: string): Promise<void> {
    while ((await this.store.run(run_id))?.finished_at === null) {
      if (this.isDead) await this.restart();
      await turn();
    }
  }

  async attemptsOf(run_id: string): Promise<number | undefined> {
    return (await this.store.run(run_id))?.attempts;
  }
}

/** An agent whose step kills its process, once the test is ready. */
const killer = (die: () => void, ready: Promise<void>): Agent =>
  durable('killer', (_, context) =>
    context.step('kill', () => merge(from(ready.then(die)).pipe(ignoreElements()), NEVER)),
  );

describe('a run that kills its process again and again', () => {
  it.each([0, 3, 5])('fails alone, although %i of five runs without progress are older', async (older) => {
    const done = new Subject<string>();
    const slow = durable('slow', (_, context) => context.step('work', () => from(done)));
    const ready = new Hold();
    const lives = new Lives((die) => [slow, killer(die, ready.come())]);
    await lives.start();
    const innocent: string[] = [];
    let culprit = '';
    for (let n = 0; n <= 5; n += 1) {
      if (n === older) culprit = await begin(lives.engine, 'killer');
      else innocent.push(await begin(lives.engine, 'slow'));
    }
    for (const run_id of [culprit, ...innocent])
      while ((await lives.store.run(run_id))?.status !== 'in-progress') await turn();
    ready.letGo();
    await lives.untilFinal(culprit);
    expect((await runOf(lives.engine, culprit)).error?.data).toMatchObject({ reason: 'recovery_exhausted' });
    // The first execution, and three attempts.
    expect(lives.deaths).toBe(4);
    // All of them are in memory again, one after the other.
    while (lives.engine.load.working < 5) await turn();
    done.next('done');
    done.complete();
    for (const run_id of innocent) expect((await toTheEnd(lives.engine, run_id)).run.status).toBe('completed');
    await lives.engine.stop();
  });

  it('fails also where it awaits, and begins to work only when its replay is over', async () => {
    const lives = new Lives((die) => [
      durable('killer', (_, context) => {
        // Not a step: it cannot be seen.
        from(turns(3)).subscribe(() => context.step('kill', () => of(die())).subscribe());
        return context.await('?').pipe(ignoreElements());
      }),
    ]);
    await lives.start();
    const run_id = await begin(lives.engine, 'killer');
    await lives.untilFinal(run_id);
    expect((await runOf(lives.engine, run_id)).error?.data).toMatchObject({ reason: 'recovery_exhausted' });
    await lives.engine.stop();
  });
});

it('a run that only awaits may be re-entered any number of times', async () => {
  let entered = 0;
  const lives = new Lives(() => [
    durable('asks', (_, context) => {
      entered += 1;
      return context.await('?').pipe(map(({ message }) => textOfMessage(message)));
    }),
  ]);
  await lives.start();
  const run_id = await begin(lives.engine, 'asks');
  for (let life = 1; life <= 8; life += 1) {
    while (entered < life || (await lives.store.run(run_id))?.status !== 'awaiting') await turn();
    while ((await lives.attemptsOf(run_id)) !== 0) await turn();
    await lives.restart();
  }
  await lives.engine.resume(run_id, reply);
  expect((await toTheEnd(lives.engine, run_id)).run.status).toBe('completed');
  await lives.engine.stop();
});

describe('runs that were in memory at two deaths, without progress', () => {
  /** Runs of two steps that were re-entered once, in a process that starts a second time; its clock stands still. */
  async function suspects(count: number, limits: Partial<Limits> = {}) {
    const begun: string[] = [];
    const work = new Map<string, Subject<string>>();
    const agent = durable('works', (_, context) => {
      begun.push(context.run_id);
      const [first, second] = [new Subject<string>(), NEVER];
      work.set(context.run_id, first);
      return merge(
        context.step('first', () => first),
        context.step('second', () => second),
      );
    });
    const asks = durable('asks', (_, context) => {
      begun.push(context.run_id);
      return merge(
        context.await('?').pipe(map(({ message }) => textOfMessage(message))),
        context.step('work', () => NEVER).pipe(ignoreElements()),
      );
    });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const lives = new Lives(() => [agent, asks], { sweepInterval: 1_000, idleTimeout: 0, ...limits });
    await lives.start();
    const ids: string[] = [];
    for (let n = 0; n < count; n += 1) ids.push(await begin(lives.engine, 'works'));
    const asking = await begin(lives.engine, 'asks');
    while ((await lives.store.run(asking))?.status !== 'awaiting' || begun.length <= count) await turn();
    await lives.restart();
    for (const run_id of [...ids, asking]) while ((await lives.attemptsOf(run_id)) !== 1) await turn();
    while (begun.length < 2 * (count + 1)) await turn();
    await lives.restart();
    begun.splice(0);
    const checks = async (passed: number): Promise<void> => {
      await vi.advanceTimersByTimeAsync(passed * 1_000);
      await turns(20);
    };
    return { lives, ids, asking, begun, work, checks };
  }

  it('are re-entered in batches that double, when those before have made progress or have lived for some time', async () => {
    const { lives, ids, asking, begun, work, checks } = await suspects(3);
    await checks(1);
    expect(begun).toEqual([]);
    await checks(1);
    expect(begun).toEqual(ids.slice(0, 1));
    await checks(4);
    expect(begun).toEqual(ids.slice(0, 1));
    await checks(1);
    expect(begun).toEqual(ids);
    work.get(ids[1] ?? '')?.next('progress');
    await turns(20);
    await checks(1);
    expect(begun).toEqual(ids);
    await lives.engine.cancel(ids[2] ?? '');
    await checks(1);
    expect(begun).toEqual([...ids, asking]);
    // The first one has made no progress, and may still be what stops the process.
    expect(await Promise.all(ids.slice(0, 2).map((run_id) => lives.attemptsOf(run_id)))).toEqual([2, 0]);
    await lives.engine.stop();
  });

  it('begin with one after each start, and are never alone where attempts have no limit', async () => {
    const { lives, ids, asking, begun, checks } = await suspects(3, { attempts: 0 });
    for (const { uptime, trial } of [
      { uptime: 2, trial: 5 },
      { uptime: 4, trial: 30 },
      { uptime: 8, trial: 60 },
      { uptime: 8, trial: 60 },
    ]) {
      await checks(uptime);
      expect(begun).toEqual(ids.slice(0, 1));
      await checks(trial);
      expect(begun).toEqual(ids);
      await checks(trial);
      expect(begun).toEqual([...ids, asking]);
      await lives.restart();
      begun.splice(0);
    }
    await lives.engine.stop();
  });

  it('use up no attempt while they wait', async () => {
    const { lives, ids, begun, checks } = await suspects(2);
    await checks(2);
    expect(begun).toEqual(ids.slice(0, 1));
    for (let life = 0; life < 5; life += 1) await lives.restart();
    expect(await lives.attemptsOf(ids[1] ?? '')).toBe(1);
    await lives.engine.stop();
  });

  it('have no last attempt taken by the next one', async () => {
    const { lives, ids, asking, begun, checks } = await suspects(2);
    const [first = '', second = ''] = ids;
    await checks(2 + 5);
    expect(begun).toEqual([first, second, asking]);
    // All of them were in memory when the process died.
    await lives.restart();
    begun.splice(0);
    await checks(4);
    expect(begun).toEqual([first]);
    expect(await lives.attemptsOf(first)).toBe(3);
    await checks(29);
    expect(begun).toEqual([first]);
    await checks(1);
    expect(begun).toEqual([first, second]);
    expect(await Promise.all([lives.attemptsOf(first), lives.attemptsOf(second)])).toEqual([2, 3]);
    await lives.engine.stop();
  });

  it('are cancelled and get replies while they wait', async () => {
    const { lives, ids, asking, begun } = await suspects(1);
    const [first = ''] = ids;
    await lives.engine.cancel(first);
    expect((await toTheEnd(lives.engine, first)).run.status).toBe('cancelled');
    // Its agent has cleaned up.
    expect(begun.splice(0)).toEqual([first]);
    await lives.engine.resume(asking, reply);
    while (begun.length === 0) await turn();
    expect(begun).toEqual([asking]);
    await lives.engine.stop();
  });
});

it.each([
  // The trials of 1, 2, 4 … runs take four checks each.
  { position: 0, most: 50 },
  { position: 64, most: 50 },
  // It stops a batch of 32, and those of them that were entered before it have their next attempt alone.
  { position: 47, most: 50 + 4 * 16 },
])(
  '64 runs beside one that kills its process at once, as number $position, complete within $most checks',
  async (row) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const second = 1_000;
    const slow = durable('slow', (_, context) => context.step('work', () => timer(3 * second).pipe(map(() => 'done'))));
    const ready = new Hold();
    const lives = new Lives((die) => [slow, killer(die, ready.come())], { sweepInterval: second });
    await lives.start();
    const ids: string[] = [];
    for (let n = 0; n <= 64; n += 1) ids.push(await begin(lives.engine, n === row.position ? 'killer' : 'slow'));
    const rows = () => Promise.all(ids.map((run_id) => lives.store.run(run_id)));
    while (!(await rows()).every((run) => run?.status === 'in-progress')) await turn();
    ready.letGo();
    await turns(20);
    let checks = 0;
    while (lives.isDead || !(await rows()).every((run) => run?.finished_at !== null)) {
      if (lives.isDead) await lives.restart();
      else checks += 1;
      if (!lives.isDead) await vi.advanceTimersByTimeAsync(second);
      await turns(20);
    }
    const expected = ids.map((_, n) => (n === row.position ? 'failed' : 'completed'));
    expect((await rows()).map((run) => run?.status)).toEqual(expected);
    expect((await runOf(lives.engine, ids[row.position] ?? '')).error?.data).toMatchObject({
      reason: 'recovery_exhausted',
    });
    expect(lives.deaths).toBe(4);
    expect(checks).toBeLessThanOrEqual(row.most);
    await lives.engine.stop();
  },
);

describe('a node that has taken runs which may stop it', () => {
  const limits = { sweepInterval: 2, attempts: 3, idleTimeout: 0 };

  /** Two runs that were in memory at the deaths of two nodes. The test gives them to the next node. */
  async function left(agent: (begun: string[]) => Agent) {
    const begun: string[] = [];
    const { node, queue, store } = nodes([agent(begun)]);
    const ids: string[] = [];
    for (const name of ['first', 'second']) {
      // It dies later: it must not take what is forwarded to the next node.
      const dead = await node(name, { ...deaf(store), limits: { ...limits, pollInterval: 86_400_000 } });
      queue.next = name;
      while (ids.length < 2)
        ids.push((await (await dead.post('/runs', ask('works', 'x', { mode: 'async' }))).json()).run_id);
      if (name === 'second') queue.expireLeases('first');
      await expect.poll(() => begun.length).toBe(name === 'first' ? 2 : 4);
    }
    const [one = '', other = ''] = ids;
    await expect.poll(async () => (await store.run(other))?.attempts).toBe(1);
    /** Node `b`, which has taken both runs. Neither gets its turn there. */
    const heir = async (): Promise<Served> => {
      let resting = (): number => 0;
      const counted: Dispatcher = {
        ...queue.dispatcher('b'),
        start: (execute, count) => {
          resting = count;
          return queue.dispatcher('b').start(execute, count);
        },
      };
      const b = await node('b', { limits: { ...limits, sweepInterval: 3_600_000 }, dispatcher: counted });
      queue.next = 'b';
      queue.expireLeases('second');
      await expect.poll(() => resting()).toBe(2);
      return b;
    };
    return { begun, node, queue, store, one, other, heir };
  }

  it('holds those that wait without a slot, and leaves them to another node when it stops', async () => {
    let finish = false;
    const { begun, node, queue, store, one, other, heir } = await left((begun) =>
      durable('works', (_, context) => {
        begun.push(context.run_id);
        return context.step('work', () => (finish ? of('done') : NEVER));
      }),
    );
    const b = await heir();
    expect([queue.holder(one), queue.holder(other), begun.length]).toEqual(['b', 'b', 4]);
    expect((await store.run(one))?.attempts).toBe(1);
    queue.next = 'c';
    const c = await node('c', { limits });
    finish = true;
    await b.app.close();
    for (const run_id of [one, other]) expect((await finished(c, run_id)).status).toBe('completed');
  });

  it('enters one that waits when another node forwards a reply to it, or a cancel', async () => {
    const { begun, node, store, one, other, heir } = await left((begun) =>
      durable('works', (_, context) => {
        begun.push(context.run_id);
        return merge(
          context.await('?').pipe(map(({ message }) => textOfMessage(message))),
          context.step('work', () => NEVER).pipe(ignoreElements()),
        );
      }),
    );
    const front = await node('front', { worker: false, limits });
    const b = await heir();
    const resumed = await front.post(`/runs/${one}`, { await_resume: reply, mode: 'async' });
    expect(resumed.status).toBe(202);
    await expect.poll(() => begun.slice(4)).toEqual([one]);
    await expect.poll(async () => (await store.run(one))?.attempts).toBe(0);
    expect((await front.post(`/runs/${other}/cancel`)).status).toBe(202);
    expect((await finished(b, other)).status).toBe('cancelled');
  });
});

it('a suspect that gets a reply shortly before its turn goes on, also where the store fails meanwhile', async () => {
  const asks = durable('asks', (_, context) => context.await('?').pipe(map(() => 'answered')));
  for (let times = 1; times <= 6; times += 1) {
    const store = new MemoryStore();
    const plan = newPlan();
    const first = await startEngine([asks], faulty(store, plan), { storeTimeout: 1 }, { onFailure() {} });
    const run_id = await begun(first, 'asks');
    plan.faults.commit = { fails: 1, times: Number.POSITIVE_INFINITY };
    await first.stop();
    const row = await store.run(run_id);
    if (row === undefined) throw new Error('the run is missing');
    await store.commit([{ row: { ...row, attempts: 1 }, expect: row.last, lines: [] }]);
    plan.faults = {};
    const engine = await startEngine([asks], faulty(store, plan), { sweepInterval: 5 }, { onFailure() {} });
    plan.faults.commit = {
      after: () => {
        plan.faults = { run: { fails: (plan.calls.run ?? 0) + 1, times } };
      },
    };
    await engine.resume(run_id, reply);
    while ((await store.run(run_id))?.status !== 'completed') await turn();
    await engine.stop();
  }
});
