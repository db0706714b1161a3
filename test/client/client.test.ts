import { setImmediate as nextTurn } from 'node:timers/promises';
import { createClient } from 'rivulet/client';
import { filter, firstValueFrom, lastValueFrom, type Observable, toArray } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { askOnce, echo, tokens } from '../support/agents.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { eventsOf, finished, serveAll, textOf } from '../support/serve.ts';

const served = await serveAll([echo, tokens, askOnce], { retry: 1 });
const client = createClient({ url: served.url });

const all = <T>(source: Observable<T>): Promise<T[]> => lastValueFrom(source.pipe(toArray()));

// What any Rivulet does is in test/runtime/contract.ts, for a client as well.
describe('running an agent', () => {
  it('creates one run if the response to its POST is lost', async () => {
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
  it('ending at an await is no disconnection: a run with on_disconnect: cancel can be resumed', async () => {
    const { run_id } = await client.sync('ask', 'go', { on_disconnect: 'cancel' });
    await client.resume(run_id, 'yes');
    expect(textOf(await finished(served, run_id))).toBe('before. You said yes.');
  });
});

describe('watching', () => {
  it('reads only as far as a loop asks', async () => {
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
    const behind = createClient({ url: proxy.url, reconnect });
    for (let turns = 0; turns < 60; turns += 1) {
      const subscription = behind.run('tokens', '200').subscribe();
      for (let n = 0; n < turns; n += 1) await nextTurn();
      subscription.unsubscribe();
    }
    await firstValueFrom(behind.run('echo', 'a').pipe(filter(({ type }) => type === 'run.completed')));
    expect(unhandled).toEqual([]);
  });
});
