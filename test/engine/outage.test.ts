import { defer, finalize, interval, map, type Observable, switchMap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { AgentResult } from '../../src/core/agent.ts';
import type { Limits } from '../../src/engine/limits.ts';
import type { Run } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { agent, askOnce, durable, echo, Tap } from '../support/agents.ts';
import { faulty, newPlan } from '../support/faulty-store.ts';
import { nodes, pairOf } from '../support/nodes.ts';
import { ask, eventsOf, finished, frames, type Served, serveApi, textOf } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

const limits = { requestTimeout: 50, pollInterval: 20 };

describe('a server whose store is unavailable', () => {
  it('answers 503 with Retry-After, is not ready, and works again when the store is back', async () => {
    const { node, store } = nodes([echo, askOnce]);
    const a = await node('a', { limits });
    const { run_id } = await (await a.post('/runs', ask('ask'))).json();
    expect((await a.get('/ready')).status).toBe(200);
    store.fail();
    const calls = [
      a.get('/ready'),
      a.get('/runs/01890000-0000-7000-8000-000000000000'),
      a.get(`/runs/${run_id}`),
      a.post('/runs', ask('echo')),
      a.post('/runs', ask('echo', 'hi', { mode: 'stream' })),
      a.post(`/runs/${run_id}/cancel`),
    ];
    for (const response of await Promise.all(calls)) {
      expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
      expect((await response.json()).code).toBe('server_error');
    }
    expect((await a.get('/health')).status).toBe(200);
    store.recover();
    expect((await a.get('/ready')).status).toBe(200);
    expect(textOf(await (await a.post('/runs', ask('echo'))).json())).toBe('hi');
  });

  it('continues its runs and open streams when the store is back', async () => {
    const tap = new Tap();
    const { a, b, store } = await pairOf([tap.agent], { limits });
    const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
    await tap.started();
    const url = `/runs/${run_id}/events`;
    const streams = await Promise.all([a, b].map((one) => one.get(url, { accept: 'text/event-stream' })));
    tap.push('one ');
    store.fail();
    tap.push('two ');
    // Long enough for a few failed retries.
    expect((await a.get('/ready')).status).toBe(503);
    expect((await a.get('/ready')).status).toBe(503);
    store.recover();
    tap.push('three ');
    tap.complete();
    for (const stream of streams) {
      const seen = await frames(stream);
      expect(seen.map(({ id }) => id)).toEqual(seen.map((_, index) => index + 1));
      expect(seen.map(({ event }) => event)).toEqual(await eventsOf(a, run_id));
    }
    expect(textOf(await finished(a, run_id))).toBe('one two three ');
  });

  it('cancels the run of a request that timed out, if the store takes it later', async () => {
    const { node, store, queue } = nodes([echo]);
    const a = await node('a', { limits, worker: false });
    queue.next = 'nothing';
    store.fail();
    expect((await a.post('/runs', ask('echo', 'hi', { mode: 'async' }))).status).toBe(503);
    store.recover();
    let runs: { status: string }[] = [];
    while (runs[0]?.status !== 'cancelled') runs = (await (await a.get('/runs')).json()).runs;
    expect(runs).toHaveLength(1);
  });
});

describe('a create that was answered 503', () => {
  it('says that the run may exist, and finds it when it is repeated with its key, also after a crash', async () => {
    const plan = newPlan();
    const store = new MemoryStore();
    // The store takes the commit, and its answer is lost.
    plan.faults.commit = { after: () => new Promise(() => {}) };
    const says = durable('says', () => 'hi');
    const served = await serveApi([says], { store: faulty(store, plan), limits });
    const headers = { 'idempotency-key': 'k' };
    const lost = await served.post('/runs', ask('says'), headers);
    expect([lost.status, await lost.json()]).toEqual([
      503,
      {
        code: 'server_error',
        message:
          'The store does not answer at the moment; the run may have been created, and a request with an ' +
          'Idempotency-Key finds it when it is repeated.',
        data: { reason: 'store_unavailable' },
      },
    ]);
    const next = await serveApi([says], { store });
    const run: Run = await (await next.post('/runs', ask('says'), headers)).json();
    expect([run.status, textOf(run)]).toEqual(['completed', 'hi']);
    const { runs } = await (await next.get('/runs')).json();
    expect(runs.map(({ run_id }: Run) => run_id)).toEqual([run.run_id]);
  });
});

describe('a server whose store takes no commits, and can be read', () => {
  const readiness = async (served: Served) => {
    const response = await served.get('/ready');
    return [response.status, (await response.json()).code ?? 'none'];
  };
  const begin = (served: Served) => served.post('/runs', ask('echo', 'hi', { mode: 'async' }));

  it.each(['hang', 'are rejected'])('is not ready while its commits %s, and ready when they are taken', async (how) => {
    const plan = newPlan();
    const served = await serveApi([echo], { store: faulty(new MemoryStore(), plan), limits: { requestTimeout: 100 } });
    const { run_id } = await (await begin(served)).json();
    expect((await finished(served, run_id)).status).toBe('completed');
    expect(await readiness(served)).toEqual([200, 'none']);
    let recover = (): void => {};
    const outage = new Promise<void>((resolve) => (recover = resolve));
    plan.faults.commit = how === 'hang' ? { before: () => outage } : { fails: 1, times: Number.POSITIVE_INFINITY };
    expect((await begin(served)).status).toBe(503);
    await expect.poll(() => readiness(served)).toEqual([503, 'server_error']);
    // Not only at one moment, such as between two attempts.
    for (let request = 0; request < 10; request += 1) expect((await served.get('/ready')).status).toBe(503);
    expect((await served.get(`/runs/${run_id}`)).status).toBe(200);
    expect((await served.get('/runs')).status).toBe(200);
    plan.faults = {};
    recover();
    await expect.poll(() => readiness(served)).toEqual([200, 'none']);
    expect((await begin(served)).status).toBe(202);
  });

  it('is not ready either when it has no run', async () => {
    const plan = newPlan({ commit: { fails: 1, times: Number.POSITIVE_INFINITY } });
    const served = await serveApi([echo], { store: faulty(new MemoryStore(), plan), limits });
    expect(await readiness(served)).toEqual([503, 'server_error']);
    expect((await served.get('/runs')).status).toBe(200);
  });

  it('stays ready while a commit takes less than `requestTimeout`', async () => {
    const plan = newPlan();
    const store = faulty(new MemoryStore(), plan);
    const served = await serveApi([echo], { store, limits: { requestTimeout: 600_000 } });
    let recover = (): void => {};
    const outage = new Promise<void>((resolve) => (recover = resolve));
    const hangs = new Promise<void>((resolve) => {
      plan.faults.commit = {
        before: () => {
          resolve();
          return outage;
        },
      };
    });
    const begun = begin(served);
    await hangs;
    expect(await readiness(served)).toEqual([200, 'none']);
    recover();
    expect((await begun).status).toBe(202);
  });
});

describe.each(['hang', 'are rejected'])('while the commits of a run %s', (how) => {
  const word = 'x'.repeat(100);
  /** A run of an agent that emits from the begin of an outage on. */
  async function inOutage(emit: (outage: Promise<void>) => AgentResult, more: Partial<Limits>) {
    const plan = newPlan();
    const [outage, end] = [new Signal(), new Signal()];
    const store = faulty(new MemoryStore(), plan);
    const served = await serveApi([agent('emits', () => emit(outage.given))], {
      store,
      limits: { ...limits, ...more },
    });
    const { run_id } = await (await served.post('/runs', ask('emits', 'hi', { mode: 'async' }))).json();
    plan.faults.commit = how === 'hang' ? { before: () => end.given } : { fails: 1, times: Number.POSITIVE_INFINITY };
    outage.give();
    const recover = (): void => {
      plan.faults = {};
      end.give();
    };
    return { recover, ended: () => finished(served, run_id) };
  }

  it('an iterable is pulled no further than `backlog` allows, and goes on when they are taken', async () => {
    const count = 2_000;
    let pulled = 0;
    async function* words(outage: Promise<void>): AsyncGenerator<string> {
      for (await outage; pulled < count; pulled += 1) yield word;
    }
    const { recover, ended } = await inOutage(words, { backlog: 10_000 });
    for (let turns = 0; turns < 100; turns += 1) await turn();
    expect(pulled).toBeGreaterThan(0);
    // What a commit has in flight, and what waits for the next one.
    expect(pulled).toBeLessThan((2 * 10_000) / word.length);
    recover();
    const run = await ended();
    expect([run.status, textOf(run)]).toEqual(['completed', word.repeat(count)]);
  });

  it.each<[string, Partial<Limits>]>([
    ['events', { events: 100 }],
    ['chars', { chars: 10_000 }],
  ])(
    'an Observable, which cannot be paused, is unsubscribed at the limit `%s`, and the run fails',
    async (_, limit) => {
      let emitted = 0;
      const left = new Signal();
      const endless = (outage: Promise<void>): Observable<string> =>
        defer(() => outage).pipe(
          switchMap(() => interval(0)),
          map(() => {
            emitted += 1;
            return word;
          }),
          finalize(left.give),
        );
      const { recover, ended } = await inOutage(endless, limit);
      await left.given;
      expect(emitted).toBeLessThanOrEqual(100);
      recover();
      expect(await ended()).toMatchObject({ status: 'failed', error: { data: { reason: 'output_limit' } } });
    },
  );
});

/** A promise that the test resolves. */
class Signal {
  give = (): void => {};
  readonly given = new Promise<void>((resolve) => (this.give = resolve));
}
