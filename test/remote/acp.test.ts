import { type Agent, defineAgent, type Run } from 'rivulet';
import { createClient } from 'rivulet/client';
import { remoteAgent } from 'rivulet/remote';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { merge } from 'rxjs';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { nodes } from '../support/nodes.ts';
import { listen, serveApi } from '../support/serve.ts';
import { agents } from './remote-agents.ts';

// The official time before a reconnect is a second.
const there = await listen(agents, { retry: 20 });
afterAll(() => there.app.close());
const client = createClient({ url: there.url });

const local = { allowNetworks: ['127.0.0.1'], delay: 1 } as const;
const remote = (name: string, options = {}): Promise<Agent> =>
  remoteAgent(`${there.url}/agents/${name}`, { ...local, ...options });

const runsThere = (agent_name: string): Promise<Run[]> =>
  client.runs({ agent_name, limit: 100 }).then(({ runs }) => Promise.all(runs.map(({ run_id }) => client.get(run_id))));
const saidIn = ({ output }: Run): unknown => output.map(({ parts }) => parts);

describe('an agent of another Rivulet server', () => {
  it('has the manifest of the remote one, without its figures', async () => {
    await client.sync('counting', '1');
    const { manifest } = await remote('counting');
    expect(manifest).toMatchObject({ name: 'counting', description: 'Counts.' });
    expect(manifest.status).toBeUndefined();
  });

  it('takes another name, and asks no server if it has a description too', async () => {
    const { manifest } = await remote('counting', { manifest: { name: 'counter' } });
    expect(manifest).toMatchObject({ name: 'counter', description: 'Counts.' });
    const url = 'http://127.0.0.1:1/agents/far';
    const far = await remoteAgent(url, { manifest: { name: 'far', description: 'Far away.' } });
    expect(far.manifest.name).toBe('far');
  });

  it('emits all parts, messages and events of the remote run, and its usage', async () => {
    const whole = await client.sync('everything', 'Hello');
    const { run, events } = await runAgent(await remote('everything'), 'Hello');
    expect(run.status).toBe('completed');
    expect(saidIn(run)).toEqual(saidIn(whole));
    expect(run.usage).toEqual(whole.usage);
    expect(events).toContainEqual(
      expect.objectContaining({ generic: { kind: 'progress', message: 'half', done: 1, total: 2 } }),
    );
  });

  it('streams each token when it comes', async () => {
    const served = await serveApi([await remote('endless')]);
    const abort = new AbortController();
    const events = createClient({ url: served.url }).run('endless', 'Go', { signal: abort.signal });
    for await (const event of events) if (event.type === 'message.part') break;
    abort.abort();
  });

  it('asks what the remote run asks, with its schema, and sends the replies on', async () => {
    const { run, questions, text } = await runAgent(await remote('asking'), 'Go', { answers: ['3', 'home'] });
    expect(run.status).toBe('completed');
    expect(text).toBe('Before. \n\nFirst 3. \n\nSecond home.');
    expect(questions[0]).toMatchObject({ schema: { type: 'integer', minimum: 1 } });
    expect(questions[0]?.message.parts[0]?.content).toBe('How many?');
  });

  it('fails with the code, the message and the data of the remote error', async () => {
    const { run, text } = await runAgent(await remote('failing'), 'Go');
    expect(text).toBe('So far. ');
    expect(run.error).toEqual({
      code: 'server_error',
      message: 'There is no tea left.',
      data: { cups: 0, code: 'out_of_tea' },
    });
  });

  it('is cancelled on its server when the caller is cancelled', async () => {
    const before = (await runsThere('endless')).length;
    const abort = new AbortController();
    const run = runAgent(await remote('endless'), 'Go', { signal: abort.signal });
    await expect.poll(async () => (await runsThere('endless')).length).toBe(before + 1);
    abort.abort();
    expect((await run).run.status).toBe('cancelled');
    await expect.poll(async () => (await runsThere('endless'))[0]?.status).toBe('cancelled');
  });

  it('is cancelled on its server when the caller fails', async () => {
    const far = await remote('endless');
    const caller = defineAgent({ name: 'caller', description: 'Fails.' }, (input, context) =>
      merge(
        context.call('endless', input),
        new Promise<string>((_, reject) => void runsWhen(1).then(() => reject(new Error('enough')))),
      ),
    );
    const known = (await runsThere('endless')).length;
    const runsWhen = async (more: number): Promise<void> => {
      await expect.poll(async () => (await runsThere('endless')).length).toBe(known + more);
    };
    expect((await runAgent(caller, 'Go', { calls: { endless: far } })).run.status).toBe('failed');
    await expect.poll(async () => (await runsThere('endless'))[0]?.status).toBe('cancelled');
  });

  it('continues the conversation of the session', async () => {
    const served = await serveApi([await remote('remembering')]);
    const here = createClient({ url: served.url });
    const first = await here.sync('remembering', 'One');
    const session_id = first.session_id ?? '';
    const second = await here.sync('remembering', 'Two', { session_id });
    const other = await here.sync('remembering', 'Three');
    expect([first, second, other].map(({ output }) => output[0]?.parts[0]?.content)).toEqual([
      '0 messages before.',
      '2 messages before.',
      '0 messages before.',
    ]);
  });
});

describe('the connection to another server', () => {
  it('is refused to a private address that is not allowed', async () => {
    const manifest = { name: 'far', description: 'Far away.' };
    const far = await remoteAgent(`${there.url}/agents/counting`, { manifest, retries: 1, delay: 1 });
    const { run } = await runAgent(far, '1');
    expect(run.error).toMatchObject({
      message: 'The remote agent does not answer.',
      data: { code: 'remote_unreachable' },
    });
  });

  it('fails the run with a clear error where the server is gone', async () => {
    const manifest = { name: 'far', description: 'Far away.' };
    const gone = await remoteAgent('http://127.0.0.1:1/agents/far', { ...local, manifest, retries: 2 });
    const { run } = await runAgent(gone, '1');
    expect(run.error?.data?.code).toBe('remote_unreachable');
    expect(JSON.stringify(run)).not.toContain('ECONNREFUSED');
  });

  it('says what the other server has refused', async () => {
    const unknown = await remote('unknown', { manifest: { name: 'far', description: 'Far away.' } });
    const { run } = await runAgent(unknown, '1');
    expect(run.error).toMatchObject({ data: { code: 'remote_refused', status: 404 } });
    expect(run.error?.message).toContain('unknown');
  });

  it('has the token and the headers that functions return for the run', async () => {
    const seen: unknown[] = [];
    const noting = await listen([defineAgent({ name: 'noting', description: 'Answers.' }, () => 'Noted.')]);
    onTestFinished(() => noting.app.close());
    noting.app.server.on('request', ({ headers }) => seen.push([headers.authorization, headers['x-run']]));
    const far = await remoteAgent(`${noting.url}/agents/noting`, {
      ...local,
      token: async () => 'secret\n',
      headers: (context) => ({ 'x-run': context?.run_id ?? 'none' }),
    });
    const { run } = await runAgent(far, 'Go');
    expect(run.status).toBe('completed');
    expect(seen[0]).toEqual(['Bearer secret', 'none']);
    expect(seen.slice(1)).toEqual(seen.slice(1).map(() => ['Bearer secret', run.run_id]));
  });

  it.each([1, 300, 700, 1_500])(
    'continues after cuts, the first after %i bytes, with no missing or duplicate parts',
    async (bytes) => {
      const proxy = await CuttingProxy.open(there.url, [bytes, bytes, 400, 900, 2_000]);
      onTestFinished(() => proxy.close());
      const before = (await runsThere('counting')).length;
      const manifest = { name: 'far', description: 'Far away.' };
      const far = await remoteAgent(`${proxy.url}/agents/counting`, { ...local, manifest });
      const { run, text } = await runAgent(far, '40');
      expect(run.status).toBe('completed');
      expect(text).toBe(Array.from({ length: 40 }, (_, n) => `${n + 1} `).join(''));
      expect(proxy.cuts).toBeGreaterThan(0);
      expect((await runsThere('counting')).length).toBe(before + 1);
    },
  );
});

describe('a durable caller', () => {
  it.each([
    ['everything', 'Hello', []],
    ['asking', 'Go', ['3', 'home']],
    ['counting', '20', []],
  ])('of %s makes one remote run, wherever it is cut off', async (name, input, answers) => {
    const before = (await runsThere(name)).length;
    const { cuts, run } = await cutEverywhere(await remote(name, { durable: true }), input, { answers });
    expect(run.status).toBe('completed');
    expect(cuts).toBeGreaterThan(2);
    expect((await runsThere(name)).length).toBe(before + 1);
  });

  it('of the same agent twice with the same input makes two remote runs', async () => {
    const far = await remote('counting');
    const before = (await runsThere('counting')).length;
    const caller = defineAgent(
      { name: 'caller', description: 'Calls twice.' },
      (input, context) => merge(context.call('counting', input), context.call('counting', input)),
      { durable: true },
    );
    const endOf = (run: Run): unknown => run.status;
    await cutEverywhere(caller, '3', { calls: { counting: far }, endOf });
    expect((await runsThere('counting')).length).toBe(before + 2);
  });

  it.each([false, true])(
    'is cancelled on its server when another node cancels the run; durable: %s',
    async (durable) => {
      const { node, queue } = nodes([await remote('endless', { durable })]);
      const [a, b] = [await node('a'), await node('b')];
      const before = (await runsThere('endless')).length;
      queue.next = 'b';
      const { run_id } = await createClient({ url: a.url }).start('endless', 'Go');
      await expect.poll(async () => (await runsThere('endless')).length).toBe(before + 1);
      await createClient({ url: queue.holder(run_id) === 'b' ? a.url : b.url }).cancel(run_id);
      await expect.poll(async () => (await runsThere('endless'))[0]?.status).toBe('cancelled');
    },
  );

  it('leaves the remote run open when the run leaves the process', async () => {
    const cancelled = vi.fn();
    there.app.server.on('request', ({ url }) => url?.endsWith('/cancel') && cancelled());
    const before = (await runsThere('endless')).length;
    const served = await listen([await remote('endless', { durable: true })], { store: 'memory:' });
    const { run_id } = await createClient({ url: served.url }).start('endless', 'Go');
    await expect.poll(async () => (await runsThere('endless')).length).toBe(before + 1);
    await served.app.close();
    expect(run_id).toBeDefined();
    expect((await runsThere('endless'))[0]?.status).toBe('in-progress');
    expect(cancelled).not.toHaveBeenCalled();
  });
});
