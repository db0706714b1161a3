import { describe, expect, it } from 'vitest';
import { newId } from '../../src/engine/ids.ts';
import type { Run, Store } from '../../src/index.ts';
import { openStore } from '../../src/stores/open.ts';
import { agent, askOnce, echo, never } from '../support/agents.ts';
import { listed } from '../support/details.ts';
import { ask, eventsOf, type Served, serveApi } from '../support/serve.ts';

const runOf = async (served: Served, ...args: Parameters<typeof ask>): Promise<Run> =>
  (await served.post('/runs', ask(...args))).json();
const list = async (served: Served, query = ''): Promise<{ runs: Run[]; next_cursor?: string }> =>
  (await served.get(`/runs${query}`)).json();
const remove = (served: Served, path: string): Promise<Response> => fetch(`${served.url}${path}`, { method: 'DELETE' });
const ids = (runs: Run[]): string[] => runs.map(({ run_id }) => run_id);
const stores = ['memory:', 'sqlite::memory:'];

describe.each(stores)('the list of runs, on %s', (store) => {
  it('has Runs without their output, newest first, filtered by agent, session and status', async () => {
    const served = await serveApi([echo, never, askOnce], { store });
    const a = await runOf(served, 'echo', 'a');
    const b = await runOf(served, 'ask', 'b');
    const c = await runOf(served, 'echo', 'c', { session_id: a.session_id });
    const d = await runOf(served, 'never', 'd', { mode: 'async' });
    expect(ids((await list(served)).runs)).toEqual(ids([d, c, b, a]));
    expect((await list(served)).runs[3]).toEqual(listed(a, 'a'));
    expect(ids((await list(served, '?agent_name=echo')).runs)).toEqual(ids([c, a]));
    expect(ids((await list(served, `?session_id=${a.session_id?.toUpperCase()}`)).runs)).toEqual(ids([c, a]));
    expect(ids((await list(served, '?status=awaiting')).runs)).toEqual(ids([b]));
    expect(ids((await list(served, '?status=completed&agent_name=echo&limit=1')).runs)).toEqual(ids([c]));
    expect((await list(served, '?agent_name=nothing')).runs).toEqual([]);
  });

  it('has no missing or duplicate runs from page to page while runs are added', async () => {
    const served = await serveApi([echo], { store });
    const made: Run[] = [];
    for (let n = 0; n < 25; n += 1) made.unshift(await runOf(served, 'echo', String(n)));
    const seen: string[] = [];
    let query = '?limit=10';
    for (;;) {
      const page = await list(served, query);
      seen.push(...ids(page.runs));
      await runOf(served, 'echo', 'added meanwhile');
      if (page.next_cursor === undefined) break;
      query = `?limit=10&cursor=${page.next_cursor}`;
    }
    expect(seen).toEqual(ids(made));
  });

  it.each(['limit=0', 'limit=101', 'limit=x', 'cursor=x', 'status=done', 'session_id=1'])(
    'refuses ?%s',
    async (query) => {
      const served = await serveApi([echo], { store });
      const response = await served.get(`/runs?${query}`);
      expect(response.status).toBe(422);
      expect((await response.json()).message).toMatch(/^query\./);
    },
  );
});

describe.each(stores)('deleting, on %s', (store) => {
  it('removes a final run with its log and its messages, and no other run', async () => {
    const served = await serveApi([echo], { store });
    const a = await runOf(served, 'echo', 'a');
    const b = await runOf(served, 'echo', 'b', { session_id: a.session_id });
    const { history } = await (await served.get(`/sessions/${a.session_id}`)).json();
    expect((await remove(served, `/runs/${a.run_id}`)).status).toBe(204);
    expect((await served.get(`/runs/${a.run_id}`)).status).toBe(404);
    expect((await served.get(`/runs/${a.run_id}/events`)).status).toBe(404);
    expect((await remove(served, `/runs/${a.run_id}`)).status).toBe(404);
    expect((await (await served.get(`/sessions/${a.session_id}`)).json()).history).toEqual(history.slice(2));
    expect((await fetch(history[0])).status).toBe(404);
    expect((await fetch(history[2])).status).toBe(200);
    expect(await eventsOf(served, b.run_id)).toHaveLength(6);
  });

  it('refuses to remove a run that is not final', async () => {
    const served = await serveApi([never, askOnce], { store });
    const going = await runOf(served, 'never', 'a', { mode: 'async' });
    const response = await remove(served, `/runs/${going.run_id}`);
    expect([response.status, (await response.json()).message]).toEqual([
      409,
      expect.stringContaining('cancel it before'),
    ]);
    expect((await remove(served, `/sessions/${going.session_id}`)).status).toBe(409);
  });

  it('removes a session with its runs, messages and state', async () => {
    const counted = agent('counted', async (_, context) => {
      await context.session.setState(1);
      return 'ok';
    });
    const served = await serveApi([echo, counted], { store, limits: { sweepInterval: 20 } });
    const a = await runOf(served, 'echo', 'a');
    await runOf(served, 'counted', 'b', { session_id: a.session_id });
    const other = await runOf(served, 'echo', 'c');
    const { history, state } = await (await served.get(`/sessions/${a.session_id}`)).json();
    expect((await remove(served, `/sessions/${a.session_id}`)).status).toBe(204);
    expect((await served.get(`/sessions/${a.session_id}`)).status).toBe(404);
    // Its data is cleared in steps.
    for (const url of [...history, state]) await expect.poll(async () => (await fetch(url)).status).toBe(404);
    expect((await served.get(`/runs/${a.run_id}`)).status).toBe(404);
    expect((await remove(served, `/sessions/${a.session_id}`)).status).toBe(404);
    expect(ids((await list(served)).runs)).toEqual(ids([other]));
    expect((await served.get(`/sessions/${other.session_id}`)).status).toBe(200);
  });
});

describe.each(stores)('retention, on %s', (url) => {
  const swept = async (store: Store, before: { runs?: string; keys: string }): Promise<void> => {
    while (await store.sweep(before));
  };

  it('removes final runs in steps, and keeps unfinished runs and the session’s messages', async () => {
    const store = await openStore(url);
    const served = await serveApi([echo, askOnce], { store });
    const a = await runOf(served, 'echo', 'a');
    const waiting = await runOf(served, 'ask', 'b');
    await swept(store, { runs: new Date(Date.now() + 1000).toISOString(), keys: '' });
    expect(await store.run(a.run_id)).toBeUndefined();
    expect(await store.events(a.run_id, 0, 10)).toEqual([]);
    expect(await store.run(waiting.run_id)).toBeDefined();
    expect((await (await served.get(`/sessions/${a.session_id}`)).json()).history).toHaveLength(2);
  });

  it('clears the log of a removed run', async () => {
    const store = await openStore(url);
    // A hundred rows of SQLite, of which one step deletes a third.
    const big = agent('big', () => Array.from({ length: 100 }, () => ({ content: 'x'.repeat(40_000), name: 'a' })));
    const served = await serveApi([big], { store });
    const { run_id } = await runOf(served, 'big');
    await store.remove(run_id);
    while (await store.sweep({ keys: '' }));
    expect(await store.events(run_id, 0, 10)).toEqual([]);
  });

  it('answers 410 for an expired run, and 404 for an unknown one', async () => {
    const served = await serveApi([echo], { store: url, limits: { runTtl: 1_000 } });
    const then = (Date.now() - 5_000).toString(16).padStart(12, '0');
    const old = `${then.slice(0, 8)}-${then.slice(8)}${newId().slice(13)}`;
    for (const path of [`/runs/${old}`, `/runs/${old}/events?after=3`]) {
      const response = await served.get(path, { accept: 'text/event-stream' });
      expect([response.status, (await response.json()).message]).toEqual([410, `Run ${old} is not kept any more.`]);
    }
    expect((await served.get(`/runs/${newId()}`)).status).toBe(404);
    expect((await served.get('/runs/00000000-0000-4000-8000-000000000000')).status).toBe(404);
  });

  it('runs periodically in the server', async () => {
    const store = await openStore(url);
    const served = await serveApi([echo], { store, limits: { runTtl: 1, sweepInterval: 2 } });
    const { run_id } = await runOf(served, 'echo');
    // The store, and not the answer: whether that is 410 depends on the time in the run's id, which other tests of this
    // process may have moved a minute ahead.
    await expect.poll(() => store.run(run_id)).toBeUndefined();
    expect((await served.get(`/runs/${run_id}`)).ok).toBe(false);
  });
});
