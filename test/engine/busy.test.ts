import { defer, filter, map, Subject, take } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Agent, type AgentOptions, defineAgent, type Run } from '../../src/index.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { oneMessage } from '../support/run-output.ts';
import { ask, eventsOf, finished, frames, type Served, serveApi, textOf, types } from '../support/serve.ts';

const session_id = '44444444-4444-4444-8444-444444444444';

/** An agent whose runs the test ends by name, and which records the order in which they started. */
function gated(options: AgentOptions = {}): { agent: Agent; begun: string[]; end: (name: string) => void } {
  const begun: string[] = [];
  const ends = new Subject<string>();
  const agent = defineAgent(
    { name: 'gated', description: 'Waits.' },
    (input) =>
      defer(() => {
        const name = input[0]?.parts[0]?.content ?? '';
        begun.push(name);
        return ends.pipe(
          filter((end) => end === name),
          take(1),
          map(() => `${name} done`),
        );
      }),
    options,
  );
  return { agent, begun, end: (name) => ends.next(name) };
}

const start = (served: Served, text: string, if_busy?: string, mode = 'async'): Promise<Response> =>
  served.post('/runs', ask('gated', text, { session_id, mode }), if_busy === undefined ? {} : { 'if-busy': if_busy });
const idOf = async (response: Promise<Response>): Promise<string> => (await (await response).json()).run_id;

describe('several runs of one session', () => {
  it('run in parallel by default', async () => {
    const { agent, begun, end } = gated();
    const served = await serveApi([agent]);
    const ids = [await idOf(start(served, 'a')), await idOf(start(served, 'b'))];
    expect(begun).toEqual(['a', 'b']);
    for (const name of begun) end(name);
    for (const id of ids) expect((await finished(served, id)).status).toBe('completed');
  });

  it('run one after the other with enqueue, in the order of their requests, in every mode', async () => {
    const { agent, begun, end } = gated({ if_busy: 'enqueue' });
    const served = await serveApi([agent]);
    const a = await idOf(start(served, 'a'));
    const b = await idOf(start(served, 'b'));
    const c = start(served, 'c', undefined, 'sync');
    const stream = await start(served, 'd', undefined, 'stream');
    expect(begun).toEqual(['a']);
    expect((await (await served.get(`/runs/${b}`)).json()).status).toBe('created');
    end('a');
    await finished(served, a);
    await seen(served, b, 'run.in-progress');
    expect(begun.slice(0, 2)).toEqual(['a', 'b']);
    end('b');
    await finished(served, b);
    while (begun.length < 3) await new Promise((resolve) => setImmediate(resolve));
    end('c');
    expect(textOf(await (await c).json())).toBe('c done');
    while (begun.length < 4) await new Promise((resolve) => setImmediate(resolve));
    end('d');
    expect(types((await frames(stream)).map(({ event }) => event))).toEqual(oneMessage());
    expect(begun).toEqual(['a', 'b', 'c', 'd']);
  });

  it('keep their queue across a restart', async () => {
    const store = new RecordingStore();
    const before = gated({ if_busy: 'enqueue', durable: true });
    const old = await serveApi([before.agent], { store });
    const ids = [await idOf(start(old, 'a')), await idOf(start(old, 'b')), await idOf(start(old, 'c'))];
    const after = gated({ if_busy: 'enqueue', durable: true });
    const served = await serveApi([after.agent], { store: await store.after(store.commits.length) });
    expect(after.begun).toEqual(['a']);
    for (const [n, name] of ['a', 'b', 'c'].entries()) {
      while (after.begun.length <= n) await new Promise((resolve) => setImmediate(resolve));
      expect(after.begun).toEqual(['a', 'b', 'c'].slice(0, n + 1));
      after.end(name);
      expect((await finished(served, ids[n] ?? '')).status).toBe('completed');
    }
  });

  it('leave the queue when they are cancelled', async () => {
    const { agent, begun, end } = gated({ if_busy: 'enqueue' });
    const served = await serveApi([agent]);
    const [a, b, c] = [await idOf(start(served, 'a')), await idOf(start(served, 'b')), await idOf(start(served, 'c'))];
    await served.post(`/runs/${b}/cancel`);
    expect((await finished(served, b)).status).toBe('cancelled');
    end('a');
    await finished(served, a);
    await seen(served, c, 'run.in-progress');
    end('c');
    await finished(served, c);
    expect(begun).toEqual(['a', 'c']);
  });

  it('are refused with reject while one of them is unfinished', async () => {
    const { agent, end } = gated({ if_busy: 'reject' });
    const served = await serveApi([agent]);
    const a = await idOf(start(served, 'a'));
    const refused = await start(served, 'b');
    expect([refused.status, (await refused.json()).message]).toEqual([
      409,
      expect.stringContaining(`busy with run ${a}`),
    ]);
    expect((await start(served, 'c', 'parallel')).status).toBe(202);
    end('a');
    end('c');
    await finished(served, a);
    while ((await start(served, 'd')).status === 409) await new Promise((resolve) => setImmediate(resolve));
  });

  it('start one of two that arrive at once with reject', async () => {
    const { agent } = gated({ if_busy: 'reject' });
    const served = await serveApi([agent]);
    const statuses = (await Promise.all(['a', 'b', 'c'].map((name) => start(served, name)))).map(
      ({ status }) => status,
    );
    expect(statuses.sort()).toEqual([202, 409, 409]);
  });

  it('replace the one that is running, with interrupt', async () => {
    const { agent, begun, end } = gated();
    const served = await serveApi([agent]);
    const a = await idOf(start(served, 'a'));
    const b = await idOf(start(served, 'b', 'interrupt'));
    expect((await finished(served, a)).status).toBe('cancelled');
    await seen(served, b, 'run.in-progress');
    end('b');
    expect(textOf(await finished(served, b))).toBe('b done');
    expect(begun).toEqual(['a', 'b']);
  });

  it('replace it when the request is repeated with its key, after a crash before it was cancelled', async () => {
    const store = new RecordingStore();
    const options: AgentOptions = { if_busy: 'interrupt', durable: true };
    const old = await serveApi([gated(options).agent], { store });
    const a = await idOf(start(old, 'a'));
    const key = { 'idempotency-key': 'once' };
    const request = ask('gated', 'b', { session_id, mode: 'async' });
    const b = await idOf(old.post('/runs', request, key));
    const created = store.commits.findIndex((writes) => writes.some(({ row }) => row.run_id === b));
    const { agent, begun, end } = gated(options);
    const served = await serveApi([agent], { store: await store.after(created + 1) });
    expect(begun).toEqual(['a']);
    expect(await idOf(served.post('/runs', request, key))).toBe(b);
    expect((await (await served.get(`/runs/${a}`)).json()).status).toMatch(/^cancel/);
    await seen(served, b, 'run.in-progress');
    expect(await idOf(served.post('/runs', request, key))).toBe(b);
    end('b');
    expect(textOf(await finished(served, b))).toBe('b done');
  });

  it('wait for one that awaits, even when it has left memory', async () => {
    const waits = defineAgent(
      { name: 'waits', description: 'a' },
      (_, context) => context.await('?').pipe(map(() => 'ok')),
      {
        durable: true,
      },
    );
    const { agent, begun, end } = gated({ if_busy: 'enqueue' });
    const store = new RecordingStore();
    const old = await serveApi([waits, agent], { store });
    const first: Run = await (await old.post('/runs', ask('waits', 'x', { session_id }))).json();
    const served = await serveApi([waits, agent], { store: await store.after(store.commits.length) });
    const b = await idOf(start(served, 'b'));
    expect(begun).toEqual([]);
    await served.post(`/runs/${first.run_id}/cancel`);
    await seen(served, b, 'run.in-progress');
    end('b');
    expect((await finished(served, b)).status).toBe('completed');
  });

  it('refuse an If-Busy header with an unknown value', async () => {
    const { agent } = gated();
    const served = await serveApi([agent]);
    const response = await start(served, 'a', 'whatever');
    expect([response.status, (await response.json()).message]).toEqual([
      422,
      'headers.if-busy: expected one of parallel, enqueue, reject, interrupt, got "whatever".',
    ]);
  });
});

/** Waits until a run's log has an event of that type. */
async function seen(served: Served, run_id: string, type: string): Promise<void> {
  while (!types(await eventsOf(served, run_id)).includes(type)) await new Promise((resolve) => setImmediate(resolve));
}
