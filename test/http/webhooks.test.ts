import { describe, expect, it } from 'vitest';
import { createServer, type ServerOptions } from '../../src/index.ts';
import { agent, askOnce, echo } from '../support/agents.ts';
import { receiver, verified } from '../support/receiver.ts';
import { scrapeUntil } from '../support/scrape.ts';
import { ask, type Served, serveApi } from '../support/serve.ts';

const secrets = ['the first master secret of this test', 'the one before it, which is retired'];
const fails = agent('fails', () => Promise.reject(new Error('No way.')));

const open = (options: Partial<ServerOptions> = {}): Promise<Served> =>
  serveApi([echo, askOnce, fails], {
    webhooks: { secrets },
    foreign: { allowNetworks: ['127.0.0.1'] },
    ...options,
    limits: { webhookRetry: 1, ...options.limits },
  });

const begin = async (served: Served, name: string, webhook: object): Promise<string> => {
  const response = await served.post('/runs', ask(name, 'hi', { webhook }));
  return (await response.json()).run_id;
};

const deliveriesOf = async (served: Served, run_id: string) =>
  (await (await served.get(`/runs/${run_id}/deliveries`)).json()).deliveries;

describe('webhooks', () => {
  it('report the changes of status in order, signed after Standard Webhooks', async () => {
    const [served, to] = [await open(), await receiver()];
    const events = ['run.created', 'run.in-progress', 'run.completed'];
    const run_id = await begin(served, 'echo', { url: to.url, events });
    const received = await to.has(3);
    expect(received.map(({ body }) => body.type)).toEqual(events);
    expect(received[2]?.body.data).toMatchObject({ run_id, agent_name: 'echo', status: 'completed' });
    const { secret } = await (await served.get(`/webhooks/secret?url=${to.url}`)).json();
    expect(secret).toMatch(/^whsec_/);
    for (const one of received) expect(verified(secret, one)).toEqual(one.body);
    expect(String(received[0]?.headers['webhook-signature']).split(' ')).toHaveLength(2);
    await expect
      .poll(async () => (await deliveriesOf(served, run_id)).map((one: object) => Reflect.get(one, 'state')))
      .toEqual(['delivered', 'delivered', 'delivered']);
  });

  it('are signed with the retired secret as well, until it is removed', async () => {
    const [old, to] = [await open({ webhooks: { secrets: secrets.slice(1) } }), await receiver()];
    const { secret } = await (await old.get(`/webhooks/secret?url=${to.url}`)).json();
    await begin(await open(), 'echo', { url: to.url });
    const [one] = await to.has(1);
    expect(one && verified(secret, one)).toBeDefined();
    await begin(await open({ webhooks: { secrets: secrets.slice(0, 1) } }), 'echo', { url: to.url });
    const [, two] = await to.has(2);
    expect(() => two && verified(secret, two)).toThrow('No matching signature');
  });

  it('report by default what a client waits for: questions and ends, with the error', async () => {
    const [served, to] = [await open(), await receiver()];
    const run_id = await begin(served, 'ask', { url: to.url });
    await to.has(1);
    await served.post(`/runs/${run_id}`, { await_resume: { message: { parts: [{ content: 'yes' }] } } });
    await to.has(2);
    await begin(served, 'fails', { url: to.url });
    const received = await to.has(3);
    expect(received.map(({ body }) => body.type)).toEqual(['run.awaiting', 'run.completed', 'run.failed']);
    expect(received[2]?.body.data.error).toMatchObject({ message: 'No way.' });
  });

  it('are sent again with the same id, in order, until the receiver takes them', async () => {
    const [served, to] = [await open(), await receiver()];
    let refusals = 3;
    to.answer = () => {
      refusals -= 1;
      return { status: refusals >= 0 ? 500 : 200 };
    };
    const run_id = await begin(served, 'echo', { url: to.url, events: ['run.in-progress', 'run.completed'] });
    const received = await to.has(5);
    expect(received.map(({ body }) => body.type)).toEqual([
      ...Array.from({ length: 4 }, () => 'run.in-progress'),
      'run.completed',
    ]);
    expect(new Set(received.slice(0, 4).map(({ id }) => id)).size).toBe(1);
    await expect
      .poll(async () => (await deliveriesOf(served, run_id))[1])
      .toMatchObject({ state: 'delivered', attempts: 4 });
  });

  it('are given up after ten attempts or at a 410, listed, and sent again when a client asks for it', async () => {
    const [served, to] = [await open(), await receiver()];
    to.answer = () => ({ status: 410 });
    const run_id = await begin(served, 'echo', { url: to.url });
    await to.has(1);
    const failed = async () => (await (await served.get('/deliveries?state=failed')).json()).deliveries;
    await expect
      .poll(failed)
      .toMatchObject([{ run_id, attempts: 1, last_status: 410, last_error: 'it answered 410', type: 'run.completed' }]);
    const [{ delivery_id }] = await failed();
    to.answer = () => ({ status: 200 });
    const replayed = await served.post(`/deliveries/${delivery_id}/replay`);
    expect([replayed.status, (await replayed.json()).state]).toEqual([202, 'pending']);
    const [first, second] = await to.has(2);
    expect(second?.id).toBe(first?.id);
    await expect.poll(failed).toEqual([]);
    expect((await served.post(`/deliveries/${run_id}/replay`)).status).toBe(404);
  });

  it('go no more to a URL whose attempts have all failed for days, until one is sent again', async () => {
    const lines: string[] = [];
    const stream = { write: (text: string) => void lines.push(text) };
    const served = await open({
      limits: { webhookRetry: 3_600_000, webhookOffAfter: 1 },
      logger: { level: 'warn', stream },
      metrics: true,
    });
    const [to, other] = [await receiver(), await receiver()];
    to.answer = () => ({ status: 500 });
    const first = async (run_id: string) => (await deliveriesOf(served, run_id))[0];
    for (let n = 1; n <= 10; n += 1) {
      const run_id = await begin(served, 'echo', { url: to.url });
      await expect.poll(() => first(run_id)).toMatchObject({ state: 'pending', attempts: 1, last_status: 500 });
    }
    await scrapeUntil(served.url, (now) => now.value('rivulet_webhook_urls_switched_off_total') === 1);
    const line = lines.find((text) => text.includes('a webhook URL was switched off'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ level: 40, owner: null, attempts: 10 });
    expect(line).toContain(new URL(to.url).origin);
    expect(line).not.toContain('/hooks');

    const refused = await begin(served, 'echo', { url: to.url });
    await expect
      .poll(() => first(refused))
      .toMatchObject({
        state: 'failed',
        attempts: 0,
        last_error: expect.stringMatching(/^its URL is switched off: all 10 attempts since 20\S+ have failed; replay/),
      });
    expect(to.received).toHaveLength(10);
    await begin(served, 'echo', { url: other.url });
    await other.has(1);
    const dead = { outcome: 'refused' };
    await scrapeUntil(served.url, (now) => now.value('rivulet_webhook_deliveries_total', dead) === 1);

    to.answer = () => ({ status: 204 });
    const { delivery_id } = await first(refused);
    expect((await served.post(`/deliveries/${delivery_id}/replay`)).status).toBe(202);
    await to.has(11);
    await begin(served, 'echo', { url: to.url });
    await to.has(12);
  });

  it('reach their receiver while another one answers nothing', async () => {
    const [served, silent, to] = [await open(), await receiver(), await receiver()];
    silent.answer = () => undefined;
    await Promise.all(Array.from({ length: 30 }, () => begin(served, 'echo', { url: silent.url })));
    await silent.has(8);
    await Promise.all(Array.from({ length: 20 }, () => begin(served, 'echo', { url: to.url })));
    await to.has(20);
    expect(silent.received).toHaveLength(8);
  });

  it('wait for as long as the receiver asks', async () => {
    const [served, to] = [await open(), await receiver()];
    to.answer = () => ({ status: 503, headers: { 'retry-after': '3600' } });
    const run_id = await begin(served, 'echo', { url: to.url });
    await to.has(1);
    const next = async () => (await deliveriesOf(served, run_id))[0];
    await expect.poll(next).toMatchObject({ attempts: 1 });
    expect(Date.parse((await next()).next_at) - Date.now()).toBeGreaterThan(3_000_000);
    expect((await served.post(`/deliveries/${(await next()).delivery_id}/replay`)).status).toBe(409);
  });

  it('of an agent are sent for each of its runs, unless the request names another one', async () => {
    const [to, other] = [await receiver(), await receiver()];
    const reports = { ...echo, options: { webhook: { url: to.url } } };
    const served = await serveApi([reports], { webhooks: { secrets }, foreign: { allowNetworks: ['127.0.0.1'] } });
    await served.post('/runs', ask('echo'));
    await to.has(1);
    await begin(served, 'echo', { url: other.url });
    await other.has(1);
    expect(to.received.length).toBe(1);
    await expect(createServer({ agents: [reports] })).rejects.toThrow(
      'agent echo: options.webhook: no webhooks.secrets are set',
    );
  });

  it('are refused without a secret, and where the URL is not one to send to', async () => {
    const off = await serveApi([echo]);
    const refused = await off.post('/runs', ask('echo', 'hi', { webhook: { url: 'https://example.com' } }));
    expect([refused.status, (await refused.json()).data.reason]).toEqual([422, 'webhooks_off']);
    expect((await off.get('/deliveries')).status).toBe(404);
    const served = await open({ foreign: {} });
    for (const url of ['http://example.com/', 'https://user:word@example.com/', 'ftp://example.com/', 'nowhere']) {
      const { status } = await served.post('/runs', ask('echo', 'hi', { webhook: { url } }));
      expect([url, status]).toEqual([url, 422]);
    }
    await expect(createServer({ agents: [echo], webhooks: { secrets: ['short'] } })).rejects.toThrow(
      'at least 32 characters',
    );
  });

  it.each([
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0177.0.0.1/',
    'https://0x7f.1/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://169.254.169.254/latest/meta-data/',
    'https://168.63.129.16/',
    'https://localhost/',
  ])('are not sent to the private address %s', async (url) => {
    const served = await open({ foreign: {}, limits: { webhookRetry: 3_600_000 } });
    const run_id = await begin(served, 'echo', { url });
    await expect
      .poll(async () => (await deliveriesOf(served, run_id))[0])
      .toMatchObject({
        attempts: 1,
        last_error: expect.stringContaining('cannot be reached, or its address is private'),
      });
  });

  it('follow no redirect, and read no answer, however long it is', async () => {
    const [served, to] = [await open({ limits: { webhookRetry: 3_600_000 } }), await receiver()];
    const other = await receiver();
    to.answer = () => ({ status: 307, headers: { location: other.url } });
    const run_id = await begin(served, 'echo', { url: to.url });
    await expect
      .poll(async () => (await deliveriesOf(served, run_id))[0])
      .toMatchObject({ last_status: 307, state: 'pending' });
    expect(other.received).toEqual([]);
  });
});
