import Fastify from 'fastify';
import {
  type Break,
  ClientError,
  createRuntime,
  createServer,
  defineAgent,
  type Event,
  type MessagePart,
  type Rivulet,
  type Runtime,
  type RuntimeServingOptions,
  rivulet,
} from 'rivulet';
import { createClient } from 'rivulet/client';
import { lastValueFrom, map, NEVER } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { agent, askOnce, echo, never, Tap } from '../support/agents.ts';
import { withoutInput } from '../support/details.ts';
import { apiOnly, listen } from '../support/serve.ts';
import { rivuletContract } from './contract.ts';

const limits = { shutdownGrace: 0 };

rivuletContract('in this process', async (agents) => {
  const runtime = await createRuntime({ agents, limits });
  return { rivulet: runtime, close: () => runtime.close() };
});

rivuletContract('behind a server', async (agents) => {
  const { url, app } = await listen(agents, { ...apiOnly, retry: 1 });
  return { rivulet: createClient({ url }), close: () => app.close() };
});

rivuletContract('behind a server of a runtime', async (agents) => {
  const runtime = await createRuntime({ agents, limits });
  const app = await createServer({ ...apiOnly, runtime });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const close = async (): Promise<void> => {
    await app.close();
    await runtime.close();
  };
  return { rivulet: createClient({ url }), close };
});

const other = '00000000-0000-4000-8000-000000000001';
const nested = (depth: number): object => (depth === 0 ? {} : { in: nested(depth - 1) });
/** A part with a field that the protocol does not know. */
const tagged = (tag: object): MessagePart => Object.assign({ content: 'a' }, { tag });
const plain = agent('plain', () => 'x', { input_content_types: ['text/plain'] });
const picky = agent('picky', (_input, context) =>
  context.await('How many?', { schema: { type: 'integer' } }).pipe(map(() => 'thanks')),
);
const held = agent('held', () => NEVER);

/** A server of a runtime, closed with the test before the runtime. */
async function served(runtime: Runtime, options: Partial<RuntimeServingOptions> = {}) {
  const app = await createServer({ ...apiOnly, ...options, runtime });
  onTestFinished(() => app.close());
  return { app, url: await app.listen({ port: 0, host: '127.0.0.1' }) };
}

const missing = '00000000-0000-4000-8000-000000000000';
const ofClass = (error: unknown): unknown =>
  error instanceof ClientError
    ? { ...error, message: error.message.replace(/[\da-f]{8}-[\da-f-]{27}/g, 'ID'), retryable: error.retryable }
    : error;
const failureOf = (call: (rivulet: Rivulet) => Promise<unknown>, rivulet: Rivulet): Promise<unknown> =>
  call(rivulet).then(() => expect.unreachable('the call has to fail'), ofClass);

describe('a call that fails', () => {
  it.each<[string, (rivulet: Rivulet) => Promise<unknown>]>([
    ['an unknown agent', (rivulet) => rivulet.start('absent', 'a')],
    ['no name of an agent', (rivulet) => rivulet.start('', 'a')],
    ['a name that no agent can have', (rivulet) => rivulet.agent('a/b c?')],
    ['an agent of the list that cannot exist', (rivulet) => rivulet.runs({ agent_name: 'NO SUCH' })],
    ['no input', (rivulet) => rivulet.start('echo', [])],
    ['a role that is none', (rivulet) => rivulet.start('echo', { role: 'system', parts: [] })],
    ['a part with content twice', (rivulet) => rivulet.start('echo', { content: 'a', content_url: 'data:,a' })],
    ['base64 that is none', (rivulet) => rivulet.start('echo', { content: '?', content_encoding: 'base64' })],
    ['a content type that the agent does not take', (rivulet) => rivulet.start('plain', { content_type: 'image/png' })],
    ['too deep an input', (rivulet) => rivulet.start('echo', tagged(nested(200)))],
    ['too large an input', (rivulet) => rivulet.start('echo', 'a'.repeat(20_000))],
    ['too many values', (rivulet) => rivulet.start('echo', tagged(Array.from({ length: 600 }, () => 1)))],
    ['no session id', (rivulet) => rivulet.start('echo', 'a', { session_id: 'mine' })],
    ['two sessions', (rivulet) => rivulet.start('echo', 'a', { session_id: missing, session: { id: other } })],
    ['an empty idempotency key', (rivulet) => rivulet.start('echo', 'a', { idempotency_key: '' })],
    ['a policy that is none', (rivulet) => rivulet.start('echo', 'a', { on_disconnect: 'grace=1e9' })],
    ['an id that is none', (rivulet) => rivulet.get('a b')],
    ['an id that a path cannot have', (rivulet) => rivulet.cancel('..')],
    ['an unknown run', (rivulet) => rivulet.cancel(missing)],
    ['the reply to an unknown run', (rivulet) => rivulet.resume(missing, 'yes')],
    [
      'a reply to a run that is final',
      (rivulet) => rivulet.sync('echo', 'a').then(({ run_id }) => rivulet.resume(run_id, 'b')),
    ],
    [
      'a reply that does not fit',
      (rivulet) => rivulet.sync('picky', 'a').then(({ run_id }) => rivulet.resume(run_id, 'b')),
    ],
    [
      'the deletion of a run that is at work',
      (rivulet) => rivulet.start('never', 'a').then(({ run_id }) => rivulet.remove(run_id)),
    ],
    ['a page that is too long', (rivulet) => rivulet.runs({ limit: 101 })],
    ['a page of agents that is too short', (rivulet) => rivulet.agents({ limit: 0 })],
    ['a cursor of runs that is none', (rivulet) => rivulet.runs({ cursor: 'next' })],
    ['a negative cursor of events', (rivulet) => lastValueFrom(rivulet.watch(missing, { after: -1 }))],
    ['events of an unknown run', (rivulet) => lastValueFrom(rivulet.watch(missing))],
    ['an unknown session', (rivulet) => rivulet.session(missing)],
    ['the deletion of an unknown session', (rivulet) => rivulet.removeSession(missing)],
    ['an unknown resource', (rivulet) => rivulet.resource(`http://elsewhere.example/resources/${missing}`)],
    ['a resource that is none', (rivulet) => rivulet.resource('state')],
  ])('fails alike in this process and over HTTP: %s', async (_what, call) => {
    const bodies = { bodyLimit: 10_000, bodyValues: 500 };
    const runtime = await createRuntime({ agents: [echo, never, plain, picky], limits, ...bodies });
    onTestFinished(() => runtime.close());
    const { url } = await served(runtime, bodies);
    const [here, there] = [await failureOf(call, runtime), await failureOf(call, createClient({ url }))];
    expect(here).toEqual(there);
    expect(here).toMatchObject({ name: 'ClientError' });
  });
});

describe('a runtime', () => {
  it('ends its runs when it is closed, and refuses calls from then on', async () => {
    const runtime = await createRuntime({ agents: [held], limits });
    const { run_id } = await runtime.start('held', 'go');
    const events = runtime.watch(run_id, { onFailed: 'end' })[Symbol.asyncIterator]();
    await events.next();
    const closed = runtime.close();
    let last: Event | undefined;
    for await (const event of events) last = event;
    // The run is not durable: it fails as the runtime stops.
    expect(last).toMatchObject({ type: 'run.failed', run: { error: { data: { reason: 'run_interrupted' } } } });
    await closed;
    for (const call of [runtime.get(missing), runtime.sync('held', 'go'), runtime.agents()]) {
      await expect(call).rejects.toMatchObject({ status: 503, data: { reason: 'stopping' } });
    }
    await runtime.close();
  });

  it('leaves durable runs to the next one, and ends their readers', async () => {
    const store = new MemoryStore();
    const durable = defineAgent({ name: 'd', description: 'Asks.' }, askOnce.run, { durable: true });
    const first = await createRuntime({ agents: [durable], limits, store });
    const { run_id } = await first.sync('d', 'go', { on_disconnect: 'cancel' });
    const paused = first.watch(run_id)[Symbol.asyncIterator]();
    await paused.next();
    const reading = lastValueFrom(first.watch(run_id));
    const failing = expect(reading).rejects.toMatchObject({ status: 503, data: { reason: 'stopping' } });
    await first.close();
    await failing;
    await paused.return();
    const second = await createRuntime({ agents: [durable], limits, store });
    onTestFinished(() => second.close());
    await second.resume(run_id, 'yes');
    expect(await lastValueFrom(second.watch(run_id))).toMatchObject({ type: 'run.completed' });
  });

  it('leaves nothing of its readers with a signal that outlives them, which still ends those that are open', async () => {
    const runtime = await createRuntime({ agents: [echo, never], limits });
    onTestFinished(() => runtime.close());
    const any = vi.spyOn(AbortSignal, 'any');
    onTestFinished(() => any.mockRestore());
    const outer = new AbortController();
    const { signal } = outer;
    const { run_id } = await runtime.sync('echo', 'go');
    for (let n = 0; n < 3; n += 1) await lastValueFrom(runtime.watch(run_id, { signal }));
    const open = lastValueFrom(runtime.run('never', 'go', { signal }));
    outer.abort('over');
    await expect(open).rejects.toBe('over');
    const sources = any.mock.calls.flatMap(([signals]) => [...signals]);
    expect(sources).not.toContain(signal);
  });

  it('refuses input that JSON cannot express', async () => {
    const runtime = await createRuntime({ agents: [echo] });
    onTestFinished(() => runtime.close());
    const ring = tagged({});
    Object.assign(ring, { tag: ring });
    const refused = { status: 400, data: { reason: 'body_not_json' } };
    await expect(runtime.start('echo', ring)).rejects.toMatchObject(refused);
    await expect(runtime.sync('echo', ring)).rejects.toMatchObject(refused);
  });

  it('closes at the end of its scope', async () => {
    let kept: Runtime;
    {
      await using runtime = await createRuntime({ agents: [echo] });
      kept = runtime;
      expect(await runtime.agents()).toHaveLength(1);
    }
    await expect(kept.agents()).rejects.toMatchObject({ data: { reason: 'stopping' } });
  });

  it('tries again where too many runs are at work, as a client does', async () => {
    const breaks: Break[] = [];
    const reconnect = { minDelay: 1, maxDelay: 1, onBreak: (info: Break) => void breaks.push(info) };
    const runtime = await createRuntime({ agents: [never, echo], limits: { ...limits, running: 1 }, reconnect });
    onTestFinished(() => runtime.close());
    const { run_id } = await runtime.start('never', 'go');
    const refused = runtime.start('echo', 'a');
    await expect(refused).rejects.toMatchObject({ status: 503, data: { reason: 'too_busy' }, retryAfter: 1_000 });
    const later = runtime.sync('echo', 'a');
    await expect.poll(() => breaks.length).toBeGreaterThan(0);
    await runtime.cancel(run_id);
    expect(await later).toMatchObject({ status: 'completed' });
    expect(breaks[0]?.error).toMatchObject({ data: { reason: 'too_busy' } });
  });

  it('reports what is wrong with its options, and leaves no store open', async () => {
    await expect(createRuntime({ agents: [echo, echo] })).rejects.toThrow('is already used by');
    await expect(createRuntime({ agents: [echo], limits: { running: -1 } })).rejects.toThrow('limits.running');
    await expect(createRuntime({ agents: [echo], bodyLimit: 0 })).rejects.toThrow('options.bodyLimit');
    await expect(createRuntime({ agents: [echo], store: 'mongo:' })).rejects.toThrow('there is no store "mongo:"');
  });

  it('writes what agents log to its log, with the run', async () => {
    const lines: unknown[] = [];
    const none = (): void => {};
    const child = (fields: object) => ({
      debug: none,
      warn: none,
      error: none,
      info: (text: string) => void lines.push([fields, text]),
    });
    const says = agent('says', (_input, { log }) => [log.info('hello') ?? 'said']);
    const runtime = await createRuntime({ agents: [says], log: { child, warn: none, error: none } });
    onTestFinished(() => runtime.close());
    const { run_id } = await runtime.sync('says', 'go');
    expect(lines).toEqual([[{ run_id }, 'hello']]);
  });
});

describe('a server of a runtime', () => {
  it('serves the runs that the app makes, and the other way around', async () => {
    const runtime = await createRuntime({ agents: [echo], limits });
    onTestFinished(() => runtime.close());
    const { url } = await served(runtime);
    const client = createClient({ url });
    const here = await runtime.sync('echo', 'a');
    expect(withoutInput(await client.get(here.run_id))).toEqual(here);
    const there = await client.sync('echo', 'b');
    expect(withoutInput(await runtime.get(there.run_id))).toEqual(there);
    const { history } = await runtime.session(here.session_id ?? '');
    for (const one of history) expect(one.startsWith(`${url}/resources/`)).toBe(true);
    expect((await fetch(history[0] ?? '')).status).toBe(200);
  });

  it('has its address in the URLs of sessions while it listens, also beside other servers', async () => {
    const runtime = await createRuntime({ agents: [echo], limits });
    onTestFinished(() => runtime.close());
    const first = await served(runtime);
    const silent = await createServer({ runtime });
    onTestFinished(() => silent.close());
    const { session_id = '' } = await runtime.sync('echo', 'a');
    const url = async () => (await runtime.session(session_id)).history[0]?.replace(/\/resources\/.*/, '');
    expect(await url()).toBe(first.url);
    const second = await served(runtime);
    expect(await url()).toBe(second.url);
    await second.app.close();
    expect(await url()).toBe(first.url);
  });

  it('is closed without its runtime: streams end, runs go on', async () => {
    const tap = new Tap();
    const runtime = await createRuntime({ agents: [tap.agent, never], limits });
    onTestFinished(() => runtime.close());
    const { url, app } = await served(runtime);
    const { run_id } = await createClient({ url }).start('tap', 'go', { on_disconnect: 'cancel' });
    const stream = await fetch(`${url}/runs/${run_id}/events`, { headers: { accept: 'text/event-stream' } });
    const body = { agent_name: 'never', input: [{ parts: [] }], mode: 'sync' };
    const headers = { 'content-type': 'application/json' };
    const sync = fetch(`${url}/runs`, { method: 'POST', headers, body: JSON.stringify(body) });
    await expect.poll(async () => (await runtime.runs({ agent_name: 'never' })).runs).toHaveLength(1);
    await tap.started();
    await app.close();
    expect(await stream.text()).toContain('run.in-progress');
    expect(await (await sync).json()).toMatchObject({ data: { reason: 'stopping' } });
    tap.push('still here');
    tap.complete();
    expect(await lastValueFrom(runtime.watch(run_id))).toMatchObject({ type: 'run.completed' });
  });

  it('refuses requests when its runtime is closed before it', async () => {
    const runtime = await createRuntime({ agents: [echo], limits });
    const { url } = await served(runtime);
    await runtime.close();
    const response = await fetch(`${url}/agents`);
    expect([response.status, await response.json()]).toMatchObject([503, { data: { reason: 'stopping' } }]);
  });

  it('may be a plugin in an app, with the public URL of the runtime', async () => {
    const runtime = await createRuntime({ agents: [echo], publicUrl: 'https://shop.example.com/acp' });
    const app = Fastify();
    onTestFinished(async () => {
      await app.close();
      await runtime.close();
    });
    await app.register(rivulet, { prefix: '/acp', runtime });
    const response = await app.inject({ url: '/acp/agents', headers: { host: 'shop.example.com' } });
    expect(response.json()).toMatchObject({ agents: [{ name: 'echo' }] });
    const { session_id = '' } = await runtime.sync('echo', 'a');
    expect((await runtime.session(session_id)).history[0]).toMatch(/^https:\/\/shop\.example\.com\/acp\/resources\//);
  });

  it('that is given agents makes a runtime, and closes its store', async () => {
    const close = vi.spyOn(MemoryStore.prototype, 'close');
    onTestFinished(() => close.mockRestore());
    const store = new MemoryStore();
    for (const options of [{ store }, {}]) {
      const app = await createServer({ agents: [echo], ...options });
      await app.close();
    }
    expect(close).toHaveBeenCalledTimes(1);
    expect(close.mock.contexts).not.toContain(store);
  });

  it('takes runtimes of createRuntime only', async () => {
    const client: Runtime = Object.assign(createClient({ url: 'http://127.0.0.1:1' }), {
      as: () => client,
      close: async () => {},
      [Symbol.asyncDispose]: async () => {},
    });
    await expect(createServer({ runtime: client })).rejects.toThrow('expected one that createRuntime made');
  });
});
