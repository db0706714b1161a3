import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Agent, Event, Run } from 'rivulet';
import { createClient, messages, parts, text, toRun } from 'rivulet/client';
import { filter, finalize, firstValueFrom, lastValueFrom, NEVER, type Observable, take, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { agent, askOnce, echo, never, Tap, tokens } from '../support/agents.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { deferred } from '../support/deferred.ts';
import { withoutInput } from '../support/details.ts';
import { eventsOf, finished, listen, type Served, serveApi, textOf } from '../support/serve.ts';

const fails = agent('fails', () => {
  throw new Error('no luck');
});

let shared: Served;
beforeAll(async () => {
  shared = await listen([echo, tokens, askOnce, never, fails], { retry: 1 });
});
afterAll(() => shared.app.close());

/** The shared server; a test with agents of its own gets a server of its own. */
async function setUp(...own: Agent[]) {
  const served = own.length === 0 ? shared : await serveApi(own, { retry: 1 });
  return { served, client: createClient({ url: served.url }) };
}

const all = <T>(source: Observable<T>): Promise<T[]> => lastValueFrom(source.pipe(toArray()));
const runIn = (event: Event | undefined): Run => {
  if (event === undefined || !('run' in event)) throw new Error(`no run in ${JSON.stringify(event)}`);
  return event.run;
};
/** An agent that never completes; `ended` resolves when its run is cancelled. */
function endlessAgent() {
  const { promise: ended, resolve } = deferred();
  return { endless: agent('endless', () => NEVER.pipe(finalize(() => resolve()))), ended };
}
/** Subscribes; `reached` resolves at the first event of the type. The subscription goes on. */
function until(source: Observable<Event>, type: Event['type']) {
  const received: Event[] = [];
  const { promise: reached, resolve: done } = deferred();
  const subscription = source.subscribe((event) => {
    received.push(event);
    if (event.type === type) done();
  });
  onTestFinished(() => subscription.unsubscribe());
  return { received, reached, subscription };
}

describe('running an agent', () => {
  it('is a whole live UI with one operator', async () => {
    const { client } = await setUp();
    expect(await all(client.run('tokens', '3').pipe(text()))).toEqual(['t0 ', 't0 t1 ', 't0 t1 t2 ']);
    expect((await all(client.run('tokens', '3').pipe(parts()))).map(({ content }) => content)).toEqual([
      't0 ',
      't1 ',
      't2 ',
    ]);
    expect(await all(client.run('echo', ['a', 'b']).pipe(messages()))).toMatchObject([
      { role: 'agent/echo', parts: [{ content: 'a' }, { content: 'b' }] },
    ]);
    await expect(all(client.run('fails', 'go').pipe(text()))).rejects.toMatchObject({
      message: 'no luck',
      status: 200,
    });
  });

  it('emits the events of the log, and folds them into the Run', async () => {
    const { served, client } = await setUp();
    const session_id = '11111111-2222-4333-8444-555555555551';
    const events = client.run('tokens', '50', { session_id });
    const received = await all(events);
    const { run_id } = runIn(received[0]);
    expect(received).toEqual(await eventsOf(served, run_id));
    expect(await lastValueFrom(client.watch(run_id).pipe(toRun()))).toEqual(withoutInput(await client.get(run_id)));
    // Cold: each subscription creates one run.
    expect((await client.runs({ session_id })).runs).toHaveLength(1);
  });

  it('resolves to the settled Run with sync, also of a failed or awaiting one', async () => {
    const { client } = await setUp();
    expect(textOf(await client.sync('tokens', '3'))).toBe('t0 t1 t2 ');
    expect(await client.sync('fails', 'go')).toMatchObject({ status: 'failed', error: { message: 'no luck' } });
    expect(await client.sync('ask', 'go')).toMatchObject({ status: 'awaiting', await_request: { type: 'message' } });
  });

  it('starts a run without following it', async () => {
    const { served, client } = await setUp();
    const run = await client.start('tokens', '3');
    expect(run.status).toBe('created');
    expect(textOf(await finished(served, run.run_id))).toBe('t0 t1 t2 ');
    const once = { idempotency_key: 'k' };
    const [first, second] = [await client.start('echo', 'a', once), await client.start('echo', 'a', once)];
    expect(second.run_id).toBe(first.run_id);
  });

  it('uses the session and the options of the call', async () => {
    const { client } = await setUp();
    const session_id = '11111111-2222-4333-8444-555555555555';
    const busy = await client.start('never', 'go', { session_id });
    expect(busy.session_id).toBe(session_id);
    await expect(client.sync('echo', 'a', { session_id, if_busy: 'reject' })).rejects.toMatchObject({ status: 409 });
    await expect(client.start('echo', 'a', { session_id, if_busy: 'reject' })).rejects.toMatchObject({ status: 409 });
    await client.sync('echo', 'a', { session_id });
    expect((await client.session(session_id)).history).toHaveLength(2);
  });

  it('creates one run if the response to its POST is lost', async () => {
    const { served, client } = await setUp();
    // Cut before the response, in its headers, and in its first event.
    const proxy = await CuttingProxy.open(served.url, [1, 100, 500]);
    onTestFinished(() => proxy.close());
    const session_id = '11111111-2222-4333-8444-555555555552';
    const behind = createClient({ url: proxy.url, reconnect: { firstRetries: 3, minDelay: 1, maxDelay: 1 } });
    const received = await all(behind.run('tokens', '20', { session_id }));
    expect(proxy.cuts).toBe(3);
    const { runs } = await client.runs({ session_id });
    expect(runs).toHaveLength(1);
    expect(received).toEqual(await eventsOf(served, runs[0]?.run_id ?? ''));
  });
});

describe('a call whose answer is lost', () => {
  it('is made once more under the same key: it creates one run, and replies once', async () => {
    const { served, client } = await setUp();
    const session_id = '11111111-2222-4333-8444-555555555553';
    // Cut before the answer, and within it.
    const proxy = await CuttingProxy.open(served.url, [1]);
    onTestFinished(() => proxy.close());
    const started = await createClient({ url: proxy.url }).start('ask', 'a', { session_id });
    expect(proxy.cuts).toBe(1);
    expect((await client.runs({ session_id })).runs.map(({ run_id }) => run_id)).toEqual([started.run_id]);
    await expect.poll(async () => (await client.get(started.run_id)).status).toBe('awaiting');
    const other = await CuttingProxy.open(served.url, [400]);
    onTestFinished(() => other.close());
    const run = await createClient({ url: other.url }).resume(started.run_id, 'yes');
    expect([other.cuts, run.run_id]).toEqual([1, started.run_id]);
    expect(textOf(await finished(served, started.run_id))).toContain('yes');
  });
});

describe('unsubscribing and cancelling', () => {
  it('unsubscribing does not end the run', async () => {
    const tap = new Tap();
    const { served, client } = await setUp(tap.agent);
    const { received, reached, subscription } = until(client.run('tap', 'go'), 'message.part');
    await tap.started();
    tap.push('one ');
    await reached;
    subscription.unsubscribe();
    const { run_id } = runIn(received[0]);
    tap.push('two ');
    tap.complete();
    expect(textOf(await finished(served, run_id))).toBe('one two ');
    expect(tap.unsubscriptions).toBe(1);
  });

  it('cancel ends the run, and its readers receive the event', async () => {
    const { client } = await setUp();
    const { received, reached, subscription } = until(client.run('never', 'go'), 'run.in-progress');
    await reached;
    const { run_id } = runIn(received[0]);
    expect((await client.cancel(run_id)).status).toBe('cancelling');
    await new Promise<void>((resolve) => subscription.add(resolve));
    expect(received.at(-1)?.type).toBe('run.cancelled');
    await expect(client.cancel(run_id)).rejects.toMatchObject({ status: 409 });
  });

  it('unsubscribing closes the connection, which ends a run with on_disconnect: cancel', async () => {
    const { endless, ended } = endlessAgent();
    const { client } = await setUp(endless);
    const { reached, subscription } = until(
      client.run('endless', 'go', { on_disconnect: 'cancel' }),
      'run.in-progress',
    );
    await reached;
    subscription.unsubscribe();
    await ended;
  });

  it('ending at an await is no disconnection: a run with on_disconnect: cancel can be resumed', async () => {
    const { served, client } = await setUp();
    const { run_id } = await client.sync('ask', 'go', { on_disconnect: 'cancel' });
    await client.resume(run_id, 'yes');
    expect(textOf(await finished(served, run_id))).toBe('before. You said yes.');
  });
});

describe('watching', () => {
  it('continues after an await until the run is final', async () => {
    const { served, client } = await setUp();
    const { received, reached, subscription } = until(client.run('ask', 'go'), 'run.awaiting');
    await reached;
    const { run_id } = runIn(received[0]);
    expect((await client.resume(run_id, 'yes')).status).toBe('in-progress');
    await new Promise<void>((resolve) => subscription.add(resolve));
    expect(received).toEqual(await eventsOf(served, run_id));
    expect(textOf(runIn(received.at(-1)))).toBe('before. You said yes.');
    await expect(client.resume(run_id, 'again')).rejects.toMatchObject({ status: 409, code: 'invalid_input' });
  });

  it('continues after an event, as a reloaded page does', async () => {
    const tap = new Tap();
    const { served, client } = await setUp(tap.agent);
    const { run_id } = await client.start('tap', 'go');
    await tap.started();
    tap.push('one ');
    // The first four events: created, in progress, the message, its part.
    const before = await all(client.watch(run_id).pipe(take(4), toRun()));
    tap.push('two ');
    tap.complete();
    const after = await all(client.watch(run_id, { after: 4 }).pipe(toRun(before.at(-1))));
    expect(after.map(textOf)).toEqual(['one two ', 'one two ', 'one two ']);
    expect(after.at(-1)).toEqual(withoutInput(await finished(served, run_id)));
    expect(await all(client.watch(run_id, { after: 7 }))).toEqual([]);
    await expect(all(client.watch(run_id, { after: 8 }))).rejects.toMatchObject({ status: 400 });
  });

  it('emits the same events to all readers', async () => {
    const { served, client } = await setUp();
    const { run_id } = await client.start('tokens', '100');
    const readers = await Promise.all([1, 2, 3].map(() => all(client.watch(run_id))));
    const events = await eventsOf(served, run_id);
    expect(readers).toEqual([events, events, events]);
  });

  it('works as a loop, and leaving the loop detaches', async () => {
    const { endless, ended } = endlessAgent();
    const { served, client } = await setUp(endless, tokens);
    const received: Event[] = [];
    for await (const event of client.run('tokens', '5')) received.push(event);
    expect(received).toEqual(await eventsOf(served, runIn(received[0]).run_id));
    for await (const { type } of client.run('endless', 'go', { on_disconnect: 'cancel' })) {
      if (type === 'run.in-progress') break;
    }
    await ended;
  });

  it('reads only as far as a loop asks', async () => {
    const { served, client } = await setUp();
    const { run_id } = await client.sync('tokens', '20000');
    let pulled = 0;
    const counting: typeof fetch = async (...args) => {
      const response = await fetch(...args);
      const count = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          pulled += chunk.length;
          controller.enqueue(chunk);
        },
      });
      return new Response(response.body?.pipeThrough(count) ?? null, response);
    };
    let total = 0;
    for await (const _ of createClient({ url: served.url, fetch: counting }).watch(run_id)) {
      total += 1;
      if (total === 1) {
        for (let n = 0; n < 50; n += 1) await nextTurn();
        expect(pulled).toBeLessThan(300_000);
      }
    }
    expect(total).toBeGreaterThan(20_000);
    expect(pulled).toBeGreaterThan(2_000_000);
  });
});

describe('unsubscribing at any moment', () => {
  it('leaves no unhandled rejection and no connection', async () => {
    const { served } = await setUp();
    const unhandled: unknown[] = [];
    const keep = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', keep);
    onTestFinished(() => void process.off('unhandledRejection', keep));
    const proxy = await CuttingProxy.open(
      served.url,
      Array.from({ length: 40 }, (_, n) => (n % 3 === 0 ? 30 : 400 + n * 50)),
    );
    onTestFinished(() => proxy.close());
    const reconnect = { firstRetries: Number.POSITIVE_INFINITY, minDelay: 1, maxDelay: 1 };
    const client = createClient({ url: proxy.url, reconnect });
    for (let turns = 0; turns < 60; turns += 1) {
      const subscription = client.run('tokens', '200').subscribe();
      for (let n = 0; n < turns; n += 1) await nextTurn();
      subscription.unsubscribe();
    }
    await firstValueFrom(client.run('echo', 'a').pipe(filter(({ type }) => type === 'run.completed')));
    expect(unhandled).toEqual([]);
  });
});
