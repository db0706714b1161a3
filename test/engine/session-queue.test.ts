import { NEVER, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Outcome, Write } from '../../src/core/ports/run-store.ts';
import type { SessionQueue } from '../../src/engine/runs/session-queue.ts';
import { createServer, type Run } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { append, end, fresh, type TestWrite } from '../stores/writes.ts';
import { agent, echo, never, Tap } from '../support/agents.ts';
import { Lines } from '../support/lines.ts';
import { nodes } from '../support/nodes.ts';
import { PickyStore } from '../support/picky-store.ts';
import { ask, finished, type Served, serveApi } from '../support/serve.ts';
import { queueOf } from '../support/session-queue.ts';
import { turn } from '../support/turn.ts';

const session_id = '66666666-6666-4666-8666-666666666666';
const start = async (served: Served, name: string, if_busy: string, text = 'hi'): Promise<Run> =>
  (await served.post('/runs', ask(name, text, { session_id, mode: 'async' }), { 'if-busy': if_busy })).json();

const statusOf = async (served: Served, { run_id }: Run): Promise<string> =>
  (await (await served.get(`/runs/${run_id}`)).json()).status;

const until = async (served: Served, run: Run, status: string): Promise<void> => {
  while ((await statusOf(served, run)) !== status) await turn();
};

/** Takes its time to cancel a run. */
class Slow extends MemoryStore {
  override async commit(writes: readonly Write[]): Promise<Outcome[]> {
    if (writes.some(({ row }) => row.status === 'cancelled')) for (let turns = 0; turns < 20; turns += 1) await turn();
    return super.commit(writes);
  }
}

/** Counts the calls of a store. */
class CountingStore extends MemoryStore {
  calls = 0;

  constructor() {
    super();
    for (const name of ['run', 'runs', 'unfinished', 'count', 'commit'] as const) {
      const method: (...args: never[]) => Promise<unknown> = this[name].bind(this);
      Object.assign(this, {
        [name]: (...args: never[]) => {
          this.calls += 1;
          return method(...args);
        },
      });
    }
  }
}

describe('the queue of a session', () => {
  it('waits for its next check where the store does not take a start, and says so', async () => {
    const store = new PickyStore(({ when }) => when === 'first');
    const tap = new Tap();
    const lines = new Lines();
    const logger = { level: 'info', stream: lines.stream };
    const served = await serveApi([tap.agent, echo], { store, logger, limits: { sweepInterval: 20 } });
    await start(served, 'tap', 'enqueue');
    const queued = await start(served, 'echo', 'enqueue');
    tap.complete();
    const text = 'the store does not take its start: no';
    expect(await lines.find(({ msg }) => msg === text)).toMatchObject({ run_id: queued.run_id });
    const before = store.rejected;
    for (let turns = 0; turns < 3; turns += 1) await turn();
    // One per check at most, and not as many as fit into a turn of the loop.
    expect(store.rejected - before).toBeLessThan(5);
    expect(await statusOf(served, queued)).toBe('created');
    store.rejects = () => false;
    await until(served, queued, 'completed');
  });

  it('makes as many calls of the store for the 200th run as for the second', async () => {
    const store = new CountingStore();
    const served = await serveApi([never], { store, limits: { sweepInterval: 60_000 } });
    await start(served, 'never', 'enqueue');
    const costs: number[] = [];
    for (let n = 0; n < 200; n += 1) {
      const before = store.calls;
      await start(served, 'never', 'enqueue');
      costs.push(store.calls - before);
    }
    expect(costs.slice(1)).toEqual(Array(199).fill(costs[1]));
  });

  describe('where 1,000 sessions wait', () => {
    /** A queue, and the run that each session waits for. */
    async function waiting(): Promise<{
      queue: SessionQueue;
      store: CountingStore;
      first: TestWrite[];
      begun: string[];
    }> {
      const store = new CountingStore();
      const { queue, begun } = queueOf(store);
      const first: TestWrite[] = [];
      for (let n = 0; n < 1_000; n += 1) {
        const older = append(fresh({ session_id: `session-${n}` }), ['1']);
        const queued = append(fresh({ session_id: `session-${n}`, queued_at: '2026-01-01T00:00:00.000Z' }), ['1']);
        await store.commit([older, queued]);
        await queue.add(`session-${n}`);
        first.push(older);
      }
      return { queue, store, first, begun };
    }

    it('reads a part of them at each check, and in some checks all', async () => {
      const { queue, store, first, begun } = await waiting();
      await store.commit(first.map(({ row }) => end(row, 'completed')));
      const costs: number[] = [];
      while (begun.length < first.length) {
        store.calls = 0;
        await queue.check();
        costs.push(store.calls);
        expect(costs.length).toBeLessThan(20);
      }
      // To find that a run has ended, and to start the next one, takes four calls.
      expect(Math.max(...costs)).toBeLessThanOrEqual(200 * 4);
    });

    it('reads all of them at the check after notifications were missed, and no more at the next one', async () => {
      const { queue, store, first, begun } = await waiting();
      await store.commit(first.map(({ row }) => end(row, 'completed')));
      queue.onMissedNotifications();
      await queue.check();
      expect(begun).toHaveLength(1_000);
      store.calls = 0;
      await queue.check();
      expect(store.calls).toBeLessThanOrEqual(200 * 4);
    });

    it('starts a run as soon as the one before it is final', async () => {
      const { queue, store, first, begun } = await waiting();
      const last = first.at(-1)?.row;
      if (last === undefined) throw new Error('runs were made');
      await store.commit([end(last, 'completed')]);
      queue.onRunFinal(last.run_id);
      while (begun.length === 0) await turn();
      expect((await store.run(begun[0] ?? ''))?.session_id).toBe(last.session_id);
    });
  });

  it('refuses runs beyond its limit with 429', async () => {
    const served = await serveApi([never], { limits: { queued: 3 } });
    for (let n = 0; n < 3; n += 1) expect((await start(served, 'never', 'enqueue')).status).toBe('created');
    const refused = await served.post('/runs', ask('never', 'hi', { session_id }), { 'if-busy': 'enqueue' });
    expect([refused.status, (await refused.json()).message]).toEqual([429, expect.stringContaining('3 runs')]);
    expect((await start(served, 'never', 'parallel')).status).toBe('created');
  });

  it('makes progress although parallel runs overlap all the time', async () => {
    const served = await serveApi([never, echo]);
    const first = await start(served, 'never', 'enqueue');
    const queued = await start(served, 'echo', 'enqueue');
    await start(served, 'never', 'parallel');
    await served.post(`/runs/${first.run_id}/cancel`);
    expect((await finished(served, queued.run_id)).status).toBe('completed');
  });

  it('starts the last of two runs that interrupt at once', async () => {
    const served = await serveApi([never, echo]);
    const first = await start(served, 'never', 'parallel');
    const [a, b] = await Promise.all([start(served, 'never', 'interrupt'), start(served, 'never', 'interrupt')]);
    const [older, newer] = [a, b].sort((x, y) => (x.run_id < y.run_id ? -1 : 1));
    if (older === undefined || newer === undefined) throw new Error('two runs were made');
    await until(served, newer, 'in-progress');
    expect([await statusOf(served, first), await statusOf(served, older)]).toEqual(['cancelled', 'cancelled']);
  });

  it('starts none of the queued runs that an interrupt cancels, however slow the store is', async () => {
    const begun: string[] = [];
    const named = agent('named', (input) => {
      const name = input[0]?.parts[0]?.content ?? '';
      begun.push(name);
      return name === 'last' ? of(name) : NEVER;
    });
    const served = await serveApi([named], { store: new Slow() });
    for (const name of ['first', 'second', 'third']) await start(served, 'named', 'enqueue', name);
    const last = await start(served, 'named', 'interrupt', 'last');
    expect((await finished(served, last.run_id)).status).toBe('completed');
    expect(begun).toEqual(['first', 'last']);
  });

  it('starts none of the queued runs of an owner that is erased', async () => {
    const begun: string[] = [];
    const named = agent('named', (input) => {
      begun.push(input[0]?.parts[0]?.content ?? '');
      return NEVER;
    });
    const scopes = ['runs:read', 'runs:write', 'sessions:write'];
    const served = await serveApi([named], {
      store: new Slow(),
      auth: { authenticate: () => ({ id: 'alice', scopes }) },
    });
    for (const name of ['first', 'second', 'third']) await start(served, 'named', 'enqueue', name);
    const erased = await served.app.inject({ method: 'DELETE', url: '/principals/me/data' });
    expect(erased.json()).toEqual({ runs: 3, sessions: 1 });
    expect(begun).toEqual(['first']);
  });

  it('starts no run in a process that is stopping', async () => {
    const store = new MemoryStore();
    const begun: string[] = [];
    const named = agent('named', (input) => {
      const name = input[0]?.parts[0]?.content ?? '';
      begun.push(name);
      return name === 'a' ? NEVER : of(name);
    });
    const app = await createServer({ agents: [named], store, limits: { shutdownGrace: 0 } });
    const post = async (text: string): Promise<Run> => {
      const payload = ask('named', text, { session_id, mode: 'async' });
      return (await app.inject({ method: 'POST', url: '/runs', payload, headers: { 'if-busy': 'enqueue' } })).json();
    };
    const [a, b] = [await post('a'), await post('b')];
    await app.close();
    expect(begun).toEqual(['a']);
    expect(await store.run(a.run_id)).toMatchObject({ status: 'failed' });
    expect(await store.run(b.run_id)).toMatchObject({ status: 'created', queued_at: expect.any(String) });
    const next = await serveApi([named], { store });
    expect((await finished(next, b.run_id)).status).toBe('completed');
    expect(begun).toEqual(['a', 'b']);
  });

  it('starts the next run later if the store fails at that moment', async () => {
    class Failing extends MemoryStore {
      failures = 3;

      override async commit(writes: readonly Write[]): Promise<Outcome[]> {
        if (writes.every(({ when }) => when !== 'first') || this.failures === 0) return super.commit(writes);
        this.failures -= 1;
        throw new Error('disk I/O error');
      }
    }
    const tap = new Tap();
    const served = await serveApi([tap.agent, echo], { store: new Failing(), limits: { sweepInterval: 5 } });
    const first = await start(served, 'tap', 'enqueue');
    const queued = await start(served, 'echo', 'enqueue');
    await tap.started();
    tap.complete();
    expect((await finished(served, first.run_id)).status).toBe('completed');
    expect((await finished(served, queued.run_id)).status).toBe('completed');
  });

  it('is the same on all nodes: none starts a run while an older one of the session is unfinished', async () => {
    const tap = new Tap();
    const { node, store } = nodes([tap.agent, echo]);
    const limits = { pollInterval: 10 };
    const [one, two] = [await node('a', { limits }), await node('b', { limits })];
    store.losesNotifications = true;
    const first = await start(one, 'tap', 'enqueue');
    await tap.started();
    const queued = await start(two, 'echo', 'enqueue');
    expect(await statusOf(one, queued)).toBe('created');
    tap.complete();
    await until(two, queued, 'completed');
    const rows = await Promise.all([first, queued].map(({ run_id }) => store.run(run_id)));
    expect((rows[0]?.finished_at ?? '') <= (rows[1]?.finished_at ?? '')).toBe(true);
  });
});

describe('a cancel on another node whose notification is lost', () => {
  it('reaches an agent that emits nothing, at the next poll', async () => {
    const tap = new Tap();
    const { node, store, queue } = nodes([tap.agent]);
    const [one, two] = [
      await node('a', { limits: { pollInterval: 10 } }),
      await node('b', { limits: { cancelGrace: 10 } }),
    ];
    queue.next = 'a';
    const run = await start(one, 'tap', 'parallel');
    await tap.started();
    store.losesNotifications = true;
    expect((await two.post(`/runs/${run.run_id}/cancel`)).status).toBe(202);
    await until(one, run, 'cancelled');
    expect(tap.unsubscriptions).toBe(1);
  });
});
