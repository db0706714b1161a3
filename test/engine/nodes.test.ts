import { concat, ignoreElements, map, merge, NEVER, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Run } from '../../src/index.ts';
import { agent, askOnce, durable, echo, Tap, tokens } from '../support/agents.ts';
import { withoutInput } from '../support/details.ts';
import { nodes, pairOf } from '../support/nodes.ts';
import { RunFeed } from '../support/run-feed.ts';
import { ask, eventsOf, finished, frames, framesUntil, type Served, textOf, types } from '../support/serve.ts';

const answer = (text: string): object => ({
  await_resume: { type: 'message', message: { role: 'user', parts: [{ content: text }] } },
  mode: 'sync',
});

describe('several nodes of one store', () => {
  it('execute a run on one of them, whichever got the request, in every mode', async () => {
    const { a, b } = await pairOf([tokens]);
    const sync = await (await a.post('/runs', ask('tokens', '20'))).json();
    expect(sync.status).toBe('completed');
    const stream = await frames(await a.post('/runs', ask('tokens', '20', { mode: 'stream' })));
    expect(stream.map(({ id }) => id)).toEqual(stream.map((_, index) => index + 1));
    expect(types(stream.map(({ event }) => event)).at(-1)).toBe('run.completed');
    const { run_id } = await (await a.post('/runs', ask('tokens', '20', { mode: 'async' }))).json();
    expect(textOf(await finished(a, run_id))).toBe(textOf(await finished(b, run_id)));
  });

  it('stream a run of one of them, token by token, from another one', async () => {
    const tap = new Tap();
    const { a, b } = await pairOf([tap.agent]);
    const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
    await tap.started();
    tap.push('one ');
    const isPart = (text: string) => (frame: { event: object }) => JSON.stringify(frame.event).includes(text);
    const url = `/runs/${run_id}/events`;
    const first = await framesUntil(await a.get(url, { accept: 'text/event-stream' }), isPart('one '));
    const rest = a.get(url, { accept: 'text/event-stream', 'last-event-id': String(first.at(-1)?.id) });
    tap.push('two ');
    tap.complete();
    const seen = [...first, ...(await frames(await rest))];
    expect(seen.map(({ id }) => id)).toEqual(seen.map((_, index) => index + 1));
    expect(seen.map(({ event }) => event)).toEqual(await eventsOf(b, run_id));
  });

  it('stream the tokens of a run of another one as they come, where nodes never poll', async () => {
    const tap = new Tap();
    const limits = { pollInterval: 86_400_000 };
    const { a } = await pairOf([tap.agent], { limits });
    const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
    await tap.started();
    const response = await a.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' });
    let token = 0;
    const pushNext = (): void => {
      token += 1;
      tap.push(`token ${token} `);
    };
    pushNext();
    await framesUntil(response, ({ event }) => {
      // Each token is made when the reader has the one before.
      if (JSON.stringify(event).includes(`token ${token} `)) pushNext();
      return token > 5;
    });
    tap.complete();
  });

  it('start the next run of a session when one of another node ends, where nodes never poll', async () => {
    const tap = new Tap();
    const limits = { pollInterval: 86_400_000 };
    const { a, b } = await pairOf([tap.agent, echo], { limits });
    const inSession = { mode: 'async', session_id: crypto.randomUUID() };
    await a.post('/runs', ask('tap', 'x', inSession));
    await tap.started();
    const { run_id } = await (await a.post('/runs', ask('echo', 'x', inSession), { 'if-busy': 'enqueue' })).json();
    tap.complete();
    expect((await finished(b, run_id)).status).toBe('completed');
  });

  it('tell feeds of the runs of another one, where nodes never poll', async () => {
    const tap = new Tap();
    const limits = { pollInterval: 86_400_000 };
    const { a } = await pairOf([tap.agent], { limits });
    const feed = await RunFeed.open(a.url);
    await feed.ready();
    const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
    await tap.started();
    await feed.has(run_id, 'in-progress');
    tap.complete();
    await feed.has(run_id, 'completed');
  });

  it('cancel a run of another one, whose agent gets the signal although it writes all the time', async () => {
    const tap = new Tap();
    const { a, b, queue } = await pairOf([tap.agent]);
    const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
    await tap.started();
    let writing = true;
    const write = (): void => {
      tap.push('.');
      if (writing) setImmediate(write);
    };
    write();
    const cancelled = await a.post(`/runs/${run_id}/cancel`);
    expect([cancelled.status, (await cancelled.json()).status]).toEqual([202, 'cancelling']);
    expect((await finished(b, run_id)).status).toBe('cancelled');
    while (tap.unsubscriptions === 0) await new Promise((resolve) => setImmediate(resolve));
    writing = false;
    expect(await eventsOf(a, run_id)).toEqual(await eventsOf(b, run_id));
    expect(queue.holder(run_id)).toBeUndefined();
  });

  for (const durable of [true, false]) {
    it(`resume a ${durable ? 'durable' : 'non-durable'} run that awaits on another one`, async () => {
      const asking = agent('asking', (_, context) =>
        concat(
          of('before. '),
          context.await('Well?').pipe(map(({ message }) => `You said ${message.parts[0]?.content}.`)),
        ),
      );
      const { a, b } = await pairOf([durable ? { ...asking, options: { durable } } : askOnce]);
      const name = durable ? 'asking' : 'ask';
      const { run_id, status } = await (await a.post('/runs', ask(name))).json();
      expect(status).toBe('awaiting');
      const run = await (await a.post(`/runs/${run_id}`, answer('yes'))).json();
      expect([run.status, textOf(run)]).toEqual(['completed', 'before. You said yes.']);
      expect((await a.post(`/runs/${run_id}`, answer('again'))).status).toBe(409);
      expect(withoutInput(await (await b.get(`/runs/${run_id}`)).json())).toEqual(run);
    });
  }

  it('accept one of two replies to a non-durable run at the same moment', async () => {
    const { node, queue } = nodes([askOnce]);
    const a = await node('a');
    const all = [a, await node('b'), await node('c')];
    queue.next = 'b';
    const { run_id } = await (await a.post('/runs', ask('ask'))).json();
    const answers = await Promise.all(all.map((one, index) => one.post(`/runs/${run_id}`, answer(`${index}`))));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const taken = answers.findIndex(({ status }) => status === 200);
    expect(textOf(await await answers[taken]?.json())).toBe(`before. You said ${taken}.`);
  });

  it('re-enter durable runs of a dead node, fail its other runs, and refuse its late writes', async () => {
    const taps = { durable: new Tap('durable'), plain: new Tap('plain') };
    const durable = { ...taps.durable.agent, options: { durable: true } };
    const { a, b, queue } = await pairOf([durable, taps.plain.agent]);
    const ids: string[] = [];
    for (const [name, tap] of Object.entries(taps)) {
      ids.push((await (await a.post('/runs', ask(name, 'x', { mode: 'async' }))).json()).run_id);
      await tap.started();
      tap.push('one ');
    }
    const [one = '', other = ''] = ids;
    await framesUntil(await b.get(`/runs/${one}/events`, { accept: 'text/event-stream' }), ({ id }) => id === 4);
    queue.next = 'a';
    queue.expireLeases('b');
    expect((await finished(b, other)).error?.data?.reason).toBe('run_interrupted');
    while (taps.durable.subscriptions < 2) await new Promise((resolve) => setImmediate(resolve));
    taps.durable.push('one ');
    taps.durable.push('two ');
    taps.durable.complete();
    expect(textOf(await finished(b, one))).toBe('one two ');
    // The first execution was dropped: its teardown might undo what the second goes on with.
    expect(taps.durable.unsubscriptions).toBe(1);
    expect(await eventsOf(a, one)).toEqual(await eventsOf(b, one));
  });

  it('keep the order of a session’s queue across all of them', async () => {
    const tap = new Tap();
    const enqueue = { ...tap.agent, options: { if_busy: 'enqueue' as const } };
    const { a, b } = await pairOf([enqueue, echo]);
    const session_id = '44444444-4444-4444-8444-444444444444';
    const first = await (await a.post('/runs', ask('tap', 'x', { session_id, mode: 'async' }))).json();
    await tap.started();
    const second = b.post('/runs', ask('echo', 'second', { session_id }), { 'if-busy': 'enqueue' });
    const rejected = await a.post('/runs', ask('echo', 'third', { session_id }), { 'if-busy': 'reject' });
    expect(rejected.status).toBe(409);
    tap.complete();
    expect((await (await second).json()).status).toBe('completed');
    expect((await finished(a, first.run_id)).status).toBe('completed');
  });

  it('start one of two runs that reach a session at the same moment', async () => {
    const tap = new Tap();
    const { node } = nodes([{ ...tap.agent, options: { if_busy: 'enqueue' as const } }]);
    const both = [await node('a'), await node('b')];
    for (let round = 0; round < 10; round += 1) {
      const session_id = `44444444-4444-4444-8444-44444444440${round}`;
      const begin = async (one: Served): Promise<Run> =>
        (await one.post('/runs', ask('tap', 'x', { session_id, mode: 'async' }))).json();
      const runs = await Promise.all(both.map(begin));
      await expect.poll(() => tap.subscriptions).toBe(2 * round + 1);
      tap.complete();
      await expect.poll(() => tap.subscriptions).toBe(2 * round + 2);
      tap.complete();
      const [a] = both;
      if (a !== undefined) for (const { run_id } of runs) expect((await finished(a, run_id)).status).toBe('completed');
    }
  });

  it('resume a reader of another one, even before the notification of its last event', async () => {
    const tap = new Tap();
    const { a, b, queue, store } = await pairOf([{ ...tap.agent, options: { durable: true } }]);
    const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
    await tap.started();
    store.losesNotifications = true;
    queue.next = 'a';
    queue.expireLeases('b');
    await expect.poll(() => tap.subscriptions).toBe(2);
    tap.push('one ');
    tap.complete();
    await expect.poll(async () => (await (await a.get(`/runs/${run_id}`)).json()).status).toBe('completed');
    const seen = await b.get(`/runs/${run_id}/events`, { accept: 'text/event-stream', 'last-event-id': '4' });
    expect(types((await frames(seen)).map(({ event }) => event))).toEqual(['message.completed', 'run.completed']);
  });

  it('detect changes by polling where notifications are lost', async () => {
    const limits = { pollInterval: 20 };
    const { a, b, store } = await pairOf([tokens, askOnce], { limits });
    store.losesNotifications = true;
    expect((await (await a.post('/runs', ask('tokens', '20'))).json()).status).toBe('completed');
    const { run_id } = await (await b.post('/runs', ask('ask'))).json();
    const run = await (await a.post(`/runs/${run_id}`, answer('yes'))).json();
    expect(run.status).toBe('completed');
  });

  it('detect changes by polling although the store has lost other runs', async () => {
    const limits = { pollInterval: 20 };
    const { a, b, queue, store } = await pairOf([askOnce], { limits });
    store.losesNotifications = true;
    const begin = async (): Promise<string> => (await (await b.post('/runs', ask('ask'))).json()).run_id;
    const lost = await begin();
    // More than are checked at once.
    for (let count = 0; count < 16; count += 1) await begin();
    const run_id = await begin();
    store.lose(lost);
    const run = await (await a.post(`/runs/${run_id}`, answer('yes'))).json();
    expect(run.status).toBe('completed');
    expect((await b.get(`/runs/${lost}`)).status).toBe(404);
    await expect.poll(() => queue.holder(lost)).toBeUndefined();
  });

  it('end a run whose node and lease are gone when it does not accept a reply', async () => {
    const { node, queue, store } = nodes([askOnce]);
    const gone = await node('gone', { limits: { pollInterval: 86_400_000 } });
    const a = await node('a', { limits: { requestTimeout: 100 } });
    queue.next = 'gone';
    const { run_id } = await (await gone.post('/runs', ask('ask'))).json();
    store.losesNotifications = true;
    queue.loseLease(run_id);
    queue.next = 'a';
    expect((await a.post(`/runs/${run_id}`, answer('yes'))).status).toBe(503);
    expect((await finished(a, run_id)).error?.data?.reason).toBe('run_interrupted');
  });

  it('hand over their durable runs when they stop', async () => {
    const tap = new Tap();
    const { a, b, queue } = await pairOf([{ ...tap.agent, options: { durable: true } }]);
    const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
    await tap.started();
    queue.next = 'a';
    await b.app.close();
    while (tap.subscriptions < 2) await new Promise((resolve) => setImmediate(resolve));
    tap.complete();
    expect((await finished(a, run_id)).status).toBe('completed');
  });

  it('hand over a run that asks beside a step, also where its offer is lost', async () => {
    const lives: string[] = [];
    const asksAtWork = (name: string) =>
      durable('asks', (_, context) =>
        merge(
          context.await('Go on?').pipe(ignoreElements()),
          context.step('work', () => {
            lives.push(name);
            return NEVER;
          }),
        ),
      );
    const { node, queue, store } = nodes([]);
    const a = await node('a', { agents: [asksAtWork('a')] });
    const { run_id } = await (await a.post('/runs', ask('asks', 'x', { mode: 'async' }))).json();
    await expect.poll(() => lives).toEqual(['a']);
    queue.next = 'none';
    await a.app.close();
    expect(await store.run(run_id)).toMatchObject({ status: 'awaiting', rests_at: null });
    queue.loseLease(run_id);
    queue.next = 'b';
    await node('b', { agents: [asksAtWork('b')], limits: { sweepInterval: 5 } });
    await expect.poll(() => lives).toEqual(['a', 'b']);
    expect((await store.run(run_id))?.due).not.toBe(null);
  });

  it('execute no runs with `worker: false`, and leave them to other nodes', async () => {
    const never = agent('never', () => NEVER);
    const { node, queue } = nodes([never]);
    const a = await node('a', { worker: false });
    const { run_id } = await (await a.post('/runs', ask('never', 'x', { mode: 'async' }))).json();
    expect(queue.holder(run_id)).toBeUndefined();
    expect((await (await a.get(`/runs/${run_id}`)).json()).status).toBe('created');
    expect((await a.post(`/runs/${run_id}/cancel`)).status).toBe(202);
    expect((await finished(a, run_id)).status).toBe('cancelled');
  });
});

describe('the feed of runs of several nodes', () => {
  for (const lost of [false, true]) {
    it(`shows changes on another node${lost ? ', although its notifications are lost' : ''}`, async () => {
      const { node, queue, store } = nodes([askOnce]);
      store.losesNotifications = lost;
      const limits = { pollInterval: 50, shutdownGrace: 0 };
      const [a, b] = [await node('a', { limits }), await node('b', { limits })];
      queue.next = 'a';
      const feed = await RunFeed.open(b.url);
      await feed.ready();
      const { run_id } = await (await a.post('/runs', ask('ask', 'hi', { mode: 'async' }))).json();
      await feed.has(run_id, 'awaiting');
      await a.post(`/runs/${run_id}`, answer('yes'));
      await feed.has(run_id, 'completed');
      feed.cut();
      const next = await (await b.post('/runs', ask('ask', 'hi', { mode: 'async' }))).json();
      await a.post(`/runs/${next.run_id}/cancel`);
      const again = await RunFeed.open(a.url, '', feed.position);
      await again.has(next.run_id, 'cancelled');
      expect(again.rows.get(run_id)?.status).toBe('completed');
    });
  }
});
