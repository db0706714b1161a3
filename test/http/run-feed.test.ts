import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createParser } from 'eventsource-parser';
import { map } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Run } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { fresh } from '../stores/writes.ts';
import { agent, askOnce, echo, never, Tap } from '../support/agents.ts';
import { newFolder } from '../support/folder.ts';
import { RunFeed } from '../support/run-feed.ts';
import { ask, type Served, serveApi } from '../support/serve.ts';

const start = async (served: Served, name: string, more: object = {}): Promise<Run> =>
  (await served.post('/runs', ask(name, 'hi', { mode: 'async', ...more }))).json();
const answer = (served: Served, run_id: string): Promise<Response> =>
  served.post(`/runs/${run_id}`, { await_resume: { message: { parts: [{ content: 'yes' }] } }, mode: 'sync' });
const fails = agent('fails', () => {
  throw new Error('no luck');
});
const session_id = '55555555-5555-4555-8555-555555555555';

describe('the feed of runs', () => {
  it('begins with the newest runs, oldest first, and then says that it is ready', async () => {
    const served = await serveApi([echo, fails]);
    const ids: string[] = [];
    for (const name of ['echo', 'fails', 'echo']) {
      ids.push((await (await served.post('/runs', ask(name))).json()).run_id);
    }
    const feed = await RunFeed.open(served.url, '?limit=2');
    await feed.ready();
    expect(feed.seen.map(({ type, run }) => [type, run?.run_id])).toEqual([
      ['run', ids[1]],
      ['run', ids[2]],
      ['ready', undefined],
    ]);
    const { runs } = await (await served.get('/runs?limit=2')).json();
    expect([...feed.rows.values()].toReversed()).toEqual(runs);
    expect(feed.rows.get(ids[1] ?? '')?.error?.message).toBe('no luck');
  });

  it('has events with a type, ids only for positions that a reader may continue from, and no blank data', async () => {
    const served = await serveApi([echo]);
    await served.post('/runs', ask('echo'));
    const response = await served.get('/runs', { accept: 'text/event-stream' });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    let text = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.includes('event: ready')) break;
    }
    expect(text.replace(/\{"run":.*\}/, '{…}').replace(/id: \d{13}/, 'id: …')).toBe(
      'retry: 1000\nevent: run\ndata: {…}\n\nevent: ready\ndata: {}\nid: …\n\n',
    );
  });

  it('sends each change of status as it happens, new runs as well', async () => {
    const served = await serveApi([askOnce]);
    const feed = await RunFeed.open(served.url);
    await feed.ready();
    const { run_id } = await start(served, 'ask');
    await feed.has(run_id, 'awaiting');
    expect(feed.rows.get(run_id)?.await_request?.message.parts[0]?.content).toBe('Well?');
    await answer(served, run_id);
    await feed.has(run_id, 'completed');
    const order = ['created', 'in-progress', 'awaiting', 'in-progress', 'completed'];
    // States that follow each other at once may be skipped, and never go back.
    let from = 0;
    for (const status of feed.statuses(run_id)) {
      from = order.indexOf(status, from) + 1;
      expect(from).toBeGreaterThan(0);
    }
    expect(feed.rows.get(run_id)).toEqual((await (await served.get('/runs')).json()).runs[0]);
  });

  it('sends nothing for the tokens of a run', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent, echo]);
    const feed = await RunFeed.open(served.url);
    const { run_id } = await start(served, 'tap');
    await tap.started();
    await feed.has(run_id, 'in-progress');
    for (let token = 0; token < 100; token += 1) tap.push('.');
    const other = await start(served, 'echo');
    await feed.has(other.run_id, 'completed');
    expect(feed.statuses(run_id).filter((status) => status === 'in-progress')).toHaveLength(1);
  });

  it('sends only runs of the agent and the session that the filter names', async () => {
    const served = await serveApi([echo, askOnce]);
    const [ofAgent, ofSession] = [
      await RunFeed.open(served.url, '?agent_name=ask'),
      await RunFeed.open(served.url, `?session_id=${session_id.toUpperCase()}`),
    ];
    const other = await start(served, 'echo');
    const asking = await start(served, 'ask');
    const within = await start(served, 'echo', { session_id });
    await ofAgent.has(asking.run_id, 'awaiting');
    await ofSession.has(within.run_id, 'completed');
    await start(served, 'ask', { session_id });
    await ofAgent.until(() => ofAgent.rows.size === 2);
    await ofSession.until(() => ofSession.rows.size === 2);
    expect(ofAgent.rows.has(other.run_id) || ofSession.rows.has(other.run_id)).toBe(false);
  });

  it('sends a run that leaves the status of the filter once, and none that never had it', async () => {
    const served = await serveApi([echo, askOnce, fails]);
    const early = await start(served, 'ask');
    const all = await RunFeed.open(served.url);
    await all.has(early.run_id, 'awaiting');
    const inbox = await RunFeed.open(served.url, '?status=awaiting');
    await inbox.has(early.run_id, 'awaiting');
    await served.post('/runs', ask('echo'));
    await served.post('/runs', ask('fails'));
    await answer(served, early.run_id);
    await inbox.until(() => inbox.rows.get(early.run_id)?.status !== 'awaiting');
    const late = await start(served, 'ask');
    await inbox.has(late.run_id, 'awaiting');
    expect([...inbox.rows.keys()]).toEqual([early.run_id, late.run_id]);
    await served.post(`/runs/${late.run_id}/cancel`);
    await all.has(late.run_id, 'cancelled');
    await inbox.until(() => inbox.rows.get(late.run_id)?.status !== 'awaiting');
    expect(inbox.statuses(early.run_id).filter((status) => status !== 'awaiting')).toHaveLength(1);
  });

  it('continues from a position with all runs that may have changed since', async () => {
    const served = await serveApi([echo, askOnce, fails]);
    const asking = await start(served, 'ask');
    const first = await RunFeed.open(served.url);
    await first.has(asking.run_id, 'awaiting');
    await first.ready();
    first.cut();
    await answer(served, asking.run_id);
    const failed = await (await served.post('/runs', ask('fails'))).json();
    const open = await start(served, 'ask');
    const again = await RunFeed.open(served.url, '', first.position);
    await again.ready();
    await again.has(open.run_id, 'awaiting');
    expect(again.rows.get(asking.run_id)?.status).toBe('completed');
    expect(again.rows.get(failed.run_id)?.error?.message).toBe('no luck');
    expect(again.seen.map(({ type }) => type)).not.toContain('reset');
    expect(Number(again.position)).toBeGreaterThanOrEqual(Number(first.position));
  });

  it('refuses a position that is none, and an agent with an invalid name', async () => {
    const served = await serveApi([echo]);
    const sse = { accept: 'text/event-stream' };
    const bad = await served.get('/runs', { ...sse, 'last-event-id': 'soon' });
    expect([bad.status, (await bad.json()).data]).toEqual([400, { reason: 'cursor_invalid' }]);
    const unknown = await served.get('/runs?agent_name=No%20Name', sse);
    expect(unknown.status).toBe(404);
  });

  it('answers HEAD as the list does', async () => {
    const served = await serveApi([echo]);
    const response = await fetch(`${served.url}/runs`, { method: 'HEAD', headers: { accept: 'text/event-stream' } });
    expect(response.headers.get('content-type')).toContain('application/json');
  });

  it('ends when the server stops', async () => {
    const served = await serveApi([never]);
    const feed = await RunFeed.open(served.url);
    const { run_id } = await start(served, 'never');
    await feed.has(run_id, 'in-progress');
    await served.app.close();
    await feed.until(() => feed.ended);
    expect(feed.rows.get(run_id)?.status).toBe('failed');
  });
});

/** Rows of runs that ended at a time. */
async function manyEnded(store: MemoryStore, count: number, finished_at: string, prefix = 'a'): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, n) => `${prefix}0000000-0000-7000-8000-${String(n).padStart(12, '0')}`);
  const ended = {
    session_id,
    status: 'completed',
    created_at: finished_at,
    finished_at,
    status_at: finished_at,
    last: 1,
    snapshot: 1,
  } as const;
  await store.commit(ids.map((run_id) => ({ row: fresh({ run_id, ...ended }), expect: 0, input: [], lines: ['{}'] })));
  return ids;
}

describe('a feed that was cut', () => {
  it('has every one of 1,000 runs that ended meanwhile', async () => {
    const store = new MemoryStore();
    const served = await serveApi([echo], { store });
    const first = await RunFeed.open(served.url);
    await first.ready();
    first.cut();
    const now = Date.now();
    const ids: string[] = [];
    for (let ms = 0; ms < 5; ms += 1) {
      ids.push(...(await manyEnded(store, 200, new Date(now + ms).toISOString(), 'abcde'[ms])));
    }
    const again = await RunFeed.open(served.url, '', first.position);
    await again.ready();
    expect(ids.filter((id) => !again.rows.has(id))).toEqual([]);
    expect(again.seen.map(({ type }) => type)).not.toContain('reset');
  });

  it('begins again, and says so, after more changes than it reads', async () => {
    const store = new MemoryStore();
    const served = await serveApi([echo], { store });
    const first = await RunFeed.open(served.url);
    await first.ready();
    first.cut();
    const now = Date.now();
    for (let n = 0; n < 26; n += 1) {
      await manyEnded(store, 400, new Date(now + n).toISOString(), String.fromCharCode(97 + n));
    }
    const again = await RunFeed.open(served.url, '?limit=3', first.position);
    await again.until(() => again.seen.some(({ type }) => type === 'reset'));
    await again.ready();
    const { runs } = await (await served.get('/runs?limit=3')).json();
    expect([...again.rows.values()].toReversed()).toEqual(runs);
    const { run_id } = await (await served.post('/runs', ask('echo'))).json();
    await again.has(run_id, 'completed');
  });
});

describe('a reader of the feed that does not read', () => {
  it('waits with one batch in its socket, delays no other reader, and gets the newest states when it reads', async () => {
    const large = agent('large', (_, context) => context.await('x'.repeat(50_000)).pipe(map(() => 'done')));
    const served = await serveApi([large]);
    const { port, host } = new URL(served.url);
    const client = connect(Number(port), '127.0.0.1');
    onTestFinished(() => void client.destroy());
    const [[server]] = await Promise.all([once(served.app.server, 'connection'), once(client, 'connect')]);
    client.pause();
    client.write(`GET /runs HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream\r\n\r\n`);
    const other = await RunFeed.open(served.url);
    await other.ready();
    // 10 MB, which the kernel's buffers do not take.
    const ids = await Promise.all(Array.from({ length: 200 }, async () => (await start(served, 'large')).run_id));
    for (const run_id of ids) await other.has(run_id, 'awaiting');
    // What the socket takes, which is more from Node 22 on, and one event.
    expect(server.writableLength).toBeLessThan(server.writableHighWaterMark + 60_000);
    const states = new Map<string, string>();
    const parser = createParser({
      onEvent: ({ data }) => {
        const { run } = JSON.parse(data);
        if (run !== undefined) states.set(run.run_id, run.status);
      },
    });
    client.setEncoding('utf8').on('data', (chunk) => parser.feed(String(chunk)));
    client.resume();
    while (!ids.every((run_id) => states.get(run_id) === 'awaiting')) await once(client, 'data');
  });
});

describe('a feed of a server with SQLite that restarts', () => {
  it('continues from the position that it had before', async () => {
    const folder = newFolder(onTestFinished);
    const store = `sqlite:${join(folder, 'runs.db')}`;
    const first = await serveApi([echo, askOnce], { store });
    const { run_id } = await start(first, 'ask');
    const feed = await RunFeed.open(first.url);
    await feed.has(run_id, 'awaiting');
    await feed.ready();
    const done = await (await first.post('/runs', ask('echo'))).json();
    await first.app.close();
    const second = await serveApi([echo, askOnce], { store });
    const again = await RunFeed.open(second.url, '', feed.position);
    await again.ready();
    // The agent is not durable, so its run failed when the first server stopped.
    expect(again.rows.get(run_id)?.status).toBe('failed');
    expect(again.rows.get(done.run_id)?.status).toBe('completed');
  });
});
