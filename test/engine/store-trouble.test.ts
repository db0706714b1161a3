import { concat, concatMap, defer, from, ignoreElements, NEVER, Observable, of } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Outcome, Write } from '../../src/core/ports/run-store.ts';
import { isFinal } from '../../src/core/run-state.ts';
import { type AgentContext, defineAgent, type Run } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { append, fresh } from '../stores/writes.ts';
import { agent, askOnce, durable, echo, Tap } from '../support/agents.ts';
import { Lines } from '../support/lines.ts';
import { nodes } from '../support/nodes.ts';
import { longerThan, PickyStore } from '../support/picky-store.ts';
import { ask, eventsOf, finished, frames, type Served, serveApi, textOf } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

const session_id = '55555555-5555-4555-8555-555555555555';
const secret = 'SQLITE_FULL: /var/secret/rivulet.db';

/** A store whose commits fail while `failing` returns true. */
class TroubledStore extends MemoryStore {
  failing: (writes: readonly Write[]) => boolean = () => false;
  refused = 0;

  override async commit(writes: readonly Write[]): Promise<Outcome[]> {
    if (!this.failing(writes)) return super.commit(writes);
    this.refused += 1;
    throw new Error(secret);
  }

  /** Resolves when so many commits have failed from now on. */
  async failures(count: number): Promise<void> {
    for (const until = this.refused + count; this.refused < until; ) await turn();
  }
}

const startOf = async (served: Served, name: string, more: object = {}, headers = {}): Promise<Run> =>
  (await served.post('/runs', ask(name, 'hi', { mode: 'async', ...more }), headers)).json();

const until = async (served: Served, run_id: string, status: string): Promise<Run> => {
  for (;;) {
    const run: Run = await (await served.get(`/runs/${run_id}`)).json();
    if (run.status === status) return run;
    await turn();
  }
};

describe('a store whose commits fail for a while', () => {
  it('delays the runs, and loses no event of an open stream', async () => {
    const store = new TroubledStore();
    const tap = new Tap();
    const served = await serveApi([tap.agent], { store });
    const { run_id } = await startOf(served, 'tap');
    await tap.started();
    const stream = await served.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' });
    store.failing = () => true;
    tap.push('one ');
    await store.failures(2);
    tap.push('two ');
    store.failing = () => false;
    tap.push('three ');
    tap.complete();
    const seen = await frames(stream);
    expect(seen.map(({ id }) => id)).toEqual(seen.map((_, index) => index + 1));
    expect(seen.map(({ event }) => event)).toEqual(await eventsOf(served, run_id));
    expect(textOf(await finished(served, run_id))).toBe('one two three ');
  });

  it('fails the run whose write it never takes, and no other run', async () => {
    const store = new TroubledStore();
    const bad = new Tap('bad');
    const good = new Tap('good');
    const served = await serveApi([bad.agent, good.agent], { store, limits: { storeTimeout: 300, sweepInterval: 5 } });
    const [a, b] = [await startOf(served, 'bad'), await startOf(served, 'good')];
    await Promise.all([bad.started(), good.started()]);
    // The clock stands still: a slow machine would give up before the commits are tried one by one.
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    store.failing = (writes) => writes.some(({ lines }) => lines.some((line) => line.includes('poison')));
    bad.push('poison');
    good.push('fine');
    await store.failures(3);
    good.complete();
    expect(textOf(await finished(served, b.run_id))).toBe('fine');
    // The time of a write begins with its own first failure, which may be still to come.
    const passing = setInterval(() => vi.advanceTimersByTime(301), 20);
    onTestFinished(() => clearInterval(passing));
    const failed = await until(served, a.run_id, 'failed');
    expect(failed.error?.message).toContain('did not take the run’s events');
    expect(JSON.stringify(failed)).not.toContain('secret');
    expect(JSON.stringify(await eventsOf(served, a.run_id))).not.toContain('poison');
  });

  it('is retried until `storeTimeout`; later durable runs continue, other runs fail, and queued runs start', async () => {
    const store = new TroubledStore();
    const tap = new Tap();
    let lives = 0;
    const lasting = defineAgent(
      { name: 'lasting', description: 'Goes on in its second life.' },
      (_, { signal }) => {
        lives += 1;
        if (lives > 1) return of('a', 'b');
        signal.addEventListener('abort', () => (first.left = true));
        return concat(of('a'), first.stream);
      },
      { durable: true },
    );
    const first = new Held();
    const served = await serveApi([tap.agent, lasting, echo], {
      store,
      limits: { storeTimeout: 100, sweepInterval: 5 },
    });
    const plain = await startOf(served, 'tap', { session_id });
    const queued = await startOf(served, 'echo', { session_id }, { 'if-busy': 'enqueue' });
    const durable = await startOf(served, 'lasting');
    await tap.started();
    await until(served, durable.run_id, 'in-progress');
    store.failing = () => true;
    tap.push('lost');
    first.next('lost');
    while (tap.unsubscriptions === 0 || !first.left) await turn();
    store.failing = () => false;
    const ended = await until(served, plain.run_id, 'failed');
    expect(ended.error?.message).toContain('did not take');
    expect(textOf(await until(served, durable.run_id, 'completed'))).toBe('ab');
    expect(textOf(await until(served, queued.run_id, 'completed'))).toBe('hi');
  });

  it('makes requests that write fail with 503 until it is back', async () => {
    const store = new TroubledStore();
    const served = await serveApi([echo], { store, limits: { requestTimeout: 30 } });
    store.failing = () => true;
    const refused = await served.post('/runs', ask('echo'));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await refused.text()).not.toContain('secret');
    store.failing = () => false;
    let refusals = 1;
    for (;;) {
      const response = await served.post('/runs', ask('echo'));
      if (response.status === 200) break;
      // The store may not have been tried again yet, or the machine is slow.
      expect(response.status).toBe(503);
      refusals += 1;
    }
    // The refused requests had no key, so their runs are cancelled.
    let statuses: Run['status'][] = [];
    const isOver = (): boolean => statuses.includes('cancelled') && statuses.every(isFinal);
    while (!isOver()) {
      const { runs } = await (await served.get('/runs')).json();
      statuses = runs.map(({ status }: Run) => status);
    }
    expect(statuses.filter((status) => status !== 'cancelled')).toEqual(['completed']);
    expect(statuses.length - 1).toBeLessThanOrEqual(refusals);
  });
});

describe('an Idempotency-Key whose request was answered with 503', () => {
  it('is kept with its run, so that a retry gets that run, and no second one', async () => {
    const store = new TroubledStore();
    const served = await serveApi([echo, askOnce], { store, limits: { requestTimeout: 30 } });
    for (const name of ['echo', 'ask']) {
      const headers = { 'idempotency-key': `k-${name}` };
      store.failing = () => true;
      expect((await served.post('/runs', ask(name), headers)).status).toBe(503);
      store.failing = () => false;
      let retry = await served.post('/runs', ask(name), headers);
      while (retry.status === 503) retry = await served.post('/runs', ask(name), headers);
      const run: Run = await retry.json();
      expect([retry.status, run.status]).toEqual([200, name === 'echo' ? 'completed' : 'awaiting']);
      const { runs } = await (await served.get(`/runs?agent_name=${name}`)).json();
      expect(runs.map(({ run_id }: Run) => run_id)).toEqual([run.run_id]);
    }
  });
});

describe('an Idempotency-Key whose request was answered with 503, and whose run was given up', () => {
  it('makes one run when the store is back, which completes', async () => {
    const store = new TroubledStore();
    const logged: string[] = [];
    const logger = { level: 'warn', stream: { write: (line: string) => void logged.push(line) } };
    const limits = { requestTimeout: 30, storeTimeout: 60, sweepInterval: 5 };
    let lives = 0;
    const counted = agent('counted', (input) => {
      lives += 1;
      return of(`life ${lives} of ${input.length}`);
    });
    const served = await serveApi([counted], { store, limits, logger });
    const request = (): Promise<Response> => served.post('/runs', ask('counted'), { 'idempotency-key': 'k' });
    const runs = async (): Promise<Run[]> => (await (await served.get('/runs')).json()).runs;
    store.failing = () => true;
    for (let times = 1; times <= 2; times += 1) {
      expect((await request()).status).toBe(503);
      // Its write is dropped, so that no later commit can take it.
      while (logged.filter((line) => line.includes('could not start')).length < times) await turn();
    }
    expect(await runs()).toEqual([]);
    // The third one is still tried when the store is back, or is given up as well.
    expect((await request()).status).toBe(503);
    store.failing = () => false;
    let retry = await request();
    for (; retry.status === 503; retry = await request()) expect((await runs()).length).toBeLessThan(2);
    const run: Run = await retry.json();
    expect([retry.status, run.status, textOf(run)]).toEqual([200, 'completed', 'life 1 of 1']);
    const again: Run = await (await request()).json();
    expect(again.run_id).toBe(run.run_id);
    expect((await runs()).map(({ run_id, status }) => [run_id, status])).toEqual([[run.run_id, 'completed']]);
    expect(lives).toBe(1);
  });
});

const isOdd = ({ lines }: Write): boolean => lines.some((line) => line.includes('unkeepable'));
/** A store that can never take a write with this text. */
const oddless = (): PickyStore => new PickyStore(isOdd, secret);

describe('one write that the store can never take', () => {
  it('fails its run at once, and no other run of the commit', async () => {
    const odd = agent('odd-one', () => of('unkeepable'));
    const served = await serveApi([odd, echo], { store: oddless(), limits: { sweepInterval: 5 } });
    const answers = await Promise.all([startOf(served, 'odd-one'), startOf(served, 'echo'), startOf(served, 'echo')]);
    const [bad, ...others] = answers;
    for (const { run_id } of others) expect((await finished(served, run_id)).status).toBe('completed');
    expect((await until(served, bad?.run_id ?? '', 'failed')).error?.message).toContain('did not take');
  });

  // At once, and after an event that the store has taken.
  it.each([[[]], [['kept ']]])(
    'fails its durable run after `attempts`, and no other run (after %j)',
    async (before) => {
      const store = oddless();
      let lives = 0;
      const odd = defineAgent(
        { name: 'odd-one', description: 'Says what cannot be kept.' },
        (_, context) => {
          lives += 1;
          const kept = before.map((text) => context.step('kept', () => of(text)));
          return concat(...kept, context.step('turn', turn).pipe(ignoreElements()), of('unkeepable'));
        },
        { durable: true },
      );
      const good = new Tap('good');
      const served = await serveApi([odd, good.agent, echo], { store, limits: { sweepInterval: 2, attempts: 3 } });
      const other = await startOf(served, 'good');
      await good.started();
      good.push('one ');
      const { run_id } = await startOf(served, 'odd-one');
      const failed = await until(served, run_id, 'failed');
      expect(failed.error).toMatchObject({ data: { reason: 'recovery_exhausted' } });
      expect(JSON.stringify(failed)).not.toContain('secret');
      expect(textOf(failed)).toBe(before.join(''));
      const ended = lives;
      good.push('two ');
      good.complete();
      expect(textOf(await finished(served, other.run_id))).toBe('one two ');
      expect(textOf(await finished(served, (await startOf(served, 'echo')).run_id))).toBe('hi');
      // The first life, and one for each attempt.
      expect([ended, lives]).toEqual([4, 4]);
    },
  );
});

// The final event repeats the output, so it is the longest.
describe('a run whose whole output the store can never take', () => {
  const text = (n: number): string => `${n} `.repeat(1_000);
  // Each in a write of its own, before that of the final event.
  const says = (context: AgentContext): Observable<string> =>
    from([0, 1, 2, 3, 4, 5]).pipe(
      concatMap((n) => concat(of(text(n)), defer(() => context.committed()).pipe(ignoreElements()))),
    );
  const partsOf = async (served: Served, run_id: string): Promise<unknown[]> =>
    (await eventsOf(served, run_id)).flatMap((event) => (event.type === 'message.part' ? [event.part.content] : []));

  it.each([
    ['store_failed', { durable: false }],
    ['recovery_exhausted', { durable: true }],
  ])('ends without it, and keeps its events: %s', async (reason, options) => {
    const long = defineAgent({ name: 'long', description: 'Says much.' }, (_, context) => says(context), options);
    const served = await serveApi([long, echo], {
      store: new PickyStore(longerThan(10_000), secret),
      limits: { sweepInterval: 2, attempts: 2 },
    });
    const { run_id } = await startOf(served, 'long', { session_id });
    const next = await startOf(served, 'echo', { session_id }, { 'if-busy': 'enqueue' });
    const run = await until(served, run_id, 'failed');
    expect(run).toMatchObject({ output: [], error: { data: { reason } } });
    expect((await partsOf(served, run_id)).join('')).toBe([0, 1, 2, 3, 4, 5].map(text).join(''));
    expect((await finished(served, next.run_id)).status).toBe('completed');
  });

  it('is cancelled without it', async () => {
    const asks = durable('asks', (_, context) => concat(says(context), context.await('Well?').pipe(ignoreElements())));
    const store = new PickyStore(() => false, secret);
    const first = await serveApi([asks], { store });
    const { run_id } = await startOf(first, 'asks');
    await until(first, run_id, 'awaiting');
    await first.app.close();
    store.rejects = longerThan(5_000);
    const served = await serveApi([asks], { store, limits: { sweepInterval: 2, cancelGrace: 1 } });
    const answer = await served.post(`/runs/${run_id}/cancel`);
    expect([answer.status, (await answer.json()).status]).toEqual([202, 'cancelling']);
    expect(await until(served, run_id, 'cancelled')).toMatchObject({ output: [] });
    expect(await partsOf(served, run_id)).toHaveLength(6);
  });
});

it('a run whose questions and replies the store can never take as a whole is cancelled without them', async () => {
  const asks = durable('asks', (_, context) =>
    from(['a', 'b', 'c']).pipe(concatMap((letter) => context.await(letter.repeat(2_000)).pipe(ignoreElements()))),
  );
  const store = new PickyStore(() => false, secret);
  const first = await serveApi([asks], { store });
  const { run_id } = await startOf(first, 'asks');
  for (const letter of ['a', 'b', 'c']) {
    while (!(await until(first, run_id, 'awaiting')).await_request?.message.parts[0]?.content?.startsWith(letter));
    const await_resume = { type: 'message', message: { parts: [{ content: 'x' }] } };
    if (letter !== 'c') await first.post(`/runs/${run_id}`, { await_resume, mode: 'async' });
  }
  await first.app.close();
  store.rejects = longerThan(3_000);
  const served = await serveApi([asks], { store, limits: { sweepInterval: 2, cancelGrace: 1 } });
  expect((await served.post(`/runs/${run_id}/cancel`)).status).toBe(202);
  expect((await until(served, run_id, 'cancelled')).output).toEqual([]);
});

it('nodes pause between their attempts to end a run where the store takes no end', async () => {
  const { node, store } = nodes([agent('long', () => NEVER), echo]);
  const commit = store.commit.bind(store);
  let refused = 0;
  store.commit = async (writes) => {
    if (writes.every(({ row }) => row.finished_at === null)) return commit(writes);
    refused += writes.length;
    return writes.map(() => ({ rejected: new Error('no') }));
  };
  const row = fresh({ agent_name: 'long', status: 'in-progress', snapshot: 1 });
  expect(await commit([append(row, ['{}'])])).toEqual(['taken']);
  await node('a', { limits: { lease: 20, sweepInterval: 50 } });
  await expect.poll(() => refused).toBeGreaterThan(0);
  const before = refused;
  for (let turns = 0; turns < 50; turns += 1) await turn();
  expect(refused - before).toBeLessThan(20);
});

const failing = new TroubledStore();
failing.failing = (writes) => writes.some(isOdd);

it.each([
  ['rejects', oddless()],
  ['does not take in time', failing],
])('the cause of a write that the store %s is in the log, once, with the id of its run', async (_, store) => {
  const lines = new Lines();
  const served = await serveApi([agent('odd', () => of('unkeepable'))], {
    store,
    logger: { level: 'info', stream: lines.stream },
    limits: { sweepInterval: 5, storeTimeout: 50 },
  });
  const { run_id } = await startOf(served, 'odd');
  const run = await finished(served, run_id);
  expect(run.status).toBe('failed');
  expect(JSON.stringify(run)).not.toContain('secret');
  const text = `stopped, as the store did not take its events: ${secret}`;
  await lines.find(({ msg }) => msg === text);
  expect(lines.all(text).map((line) => line.run_id)).toEqual([run_id]);
});

/** A source that stays open until it is unsubscribed. */
class Held {
  left = false;
  #next: ((text: string) => void) | undefined;
  readonly stream = new Observable<string>((subscriber) => {
    this.#next = (text) => subscriber.next(text);
  });

  next(text: string): void {
    this.#next?.(text);
  }
}
