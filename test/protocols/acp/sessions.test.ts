import { concatMap, from, map, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { textOf as contentOf, type Message, type Run, type Session } from '../../../src/index.ts';
import { openStore } from '../../../src/stores/open.ts';
import { agent, echo } from '../../support/agents.ts';
import { answering } from '../../support/answering.ts';
import { ask, finished, type Served, serveApi, textOf } from '../../support/serve.ts';

/** Answers the session so far. */
const recall = agent('recall', (_, context) =>
  context.session.history.pipe(
    map(contentOf),
    toArray(),
    map((texts) => texts.join(',') || 'nothing'),
  ),
);

/** Counts its runs in the session's state. */
const counter = agent('counter', (_, context) =>
  from(context.session.state<number>()).pipe(
    concatMap(async (count = 0) => {
      await context.session.setState(count + 1);
      return String(count + 1);
    }),
  ),
);

const runOf = async (served: Served, ...args: Parameters<typeof ask>): Promise<Run> =>
  (await served.post('/runs', ask(...args))).json();
const sessionOf = async (served: Served, id: string | undefined): Promise<Session> =>
  (await served.get(`/sessions/${id}`)).json();
const loopback = { foreign: { allowNetworks: ['127.0.0.0/8'] } };

describe('a session', () => {
  it('is created for a run that names none', async () => {
    const served = await serveApi([echo]);
    const run = await runOf(served, 'echo', 'hi');
    const session = await sessionOf(served, run.session_id);
    expect(session.id).toBe(run.session_id);
    expect(session.history).toHaveLength(2);
    const [said, answered] = await Promise.all(session.history.map(async (url) => (await fetch(url)).json()));
    expect(said).toMatchObject({ role: 'user', parts: [{ content: 'hi' }] });
    expect(answered).toMatchObject({ role: 'agent/echo', parts: [{ content: 'hi' }] });
    expect(await (await served.get(`/session/${run.session_id}`)).json()).toEqual(session);
  });

  it('begins with an unknown id, and is kept', async () => {
    const served = await serveApi([echo, recall]);
    const session_id = '11111111-1111-4111-8111-111111111111';
    expect(textOf(await runOf(served, 'recall', 'x', { session_id }))).toBe('nothing');
    await runOf(served, 'echo', 'one', { session_id });
    expect(textOf(await runOf(served, 'recall', 'y', { session: { id: session_id } }))).toBe('x,nothing,one,one');
  });

  it('has the messages of failed and cancelled runs, marked as such', async () => {
    const bad = agent('bad', () => {
      throw new Error('no');
    });
    const hang = agent('hang', () => new Promise<string>(() => {}), {});
    const served = await serveApi([echo, bad, hang], { limits: { cancelGrace: 1 } });
    const { session_id } = await runOf(served, 'echo', 'one');
    await runOf(served, 'bad', 'two', { session_id });
    const { run_id } = await runOf(served, 'hang', 'three', { session_id, mode: 'async' });
    await served.post(`/runs/${run_id}/cancel`);
    await finished(served, run_id);
    const { history } = await sessionOf(served, session_id);
    const messages: Message[] = await Promise.all(history.map(async (url) => (await fetch(url)).json()));
    expect(messages.map(({ role, finish_reason }) => [role, finish_reason])).toEqual([
      ['user', undefined],
      ['agent/echo', undefined],
      ['user', undefined],
      ['agent/bad', 'failed'],
      ['user', undefined],
      ['agent/hang', 'cancelled'],
    ]);
  });

  it('loses no history when runs end at the same time', async () => {
    const served = await serveApi([echo]);
    const session_id = '22222222-2222-4222-8222-222222222222';
    await Promise.all(Array.from({ length: 40 }, (_, n) => runOf(served, 'echo', `m${n}`, { session_id })));
    const { history } = await sessionOf(served, session_id);
    expect(history).toHaveLength(80);
    expect(new Set(history).size).toBe(80);
  });

  it('keeps the state of agents as a resource', async () => {
    const served = await serveApi([counter]);
    const first = await runOf(served, 'counter');
    expect(textOf(first)).toBe('1');
    expect(textOf(await runOf(served, 'counter', 'again', { session_id: first.session_id }))).toBe('2');
    const { state } = await sessionOf(served, first.session_id);
    expect(await (await fetch(state ?? '')).json()).toBe(2);
  });

  it('has URLs of the public address, whatever name a client uses', async () => {
    const served = await serveApi([echo], {
      publicUrl: 'https://agents.example.com/',
      allowedHosts: ['other.example'],
    });
    const { session_id } = await runOf(served, 'echo');
    const response = await served.app.inject({ url: `/sessions/${session_id}`, headers: { host: 'other.example' } });
    for (const url of response.json().history) expect(url).toMatch(/^https:\/\/agents\.example\.com\/resources\//);
  });

  it('continues on another server, and back again', async () => {
    const a = await serveApi([echo, recall, counter], loopback);
    const b = await serveApi([echo, recall, counter], loopback);
    const { session_id } = await runOf(a, 'echo', 'one');
    await runOf(a, 'counter', 'count', { session_id });
    const onA = await sessionOf(a, session_id);

    expect(textOf(await runOf(b, 'recall', 'r', { session: onA }))).toBe('one,one,count,1');
    expect(textOf(await runOf(b, 'counter', 'count', { session_id }))).toBe('2');
    const onB = await sessionOf(b, session_id);
    expect(onB.history.slice(0, 4)).toEqual(onA.history);
    expect(onB.history).toHaveLength(8);
    expect(onB.history.slice(4).every((url) => url.startsWith(b.url))).toBe(true);

    expect(textOf(await runOf(a, 'recall', 'r', { session: onB }))).toBe('one,one,count,1,r,one,one,count,1,count,2');
    expect(textOf(await runOf(a, 'counter', 'count', { session_id }))).toBe('3');
    const back = await sessionOf(a, session_id);
    expect(new Set(back.history).size).toBe(back.history.length);
  });
});

describe('a session’s URLs of other servers', () => {
  const withHistory = (url: string) => ({ session: { id: '33333333-3333-4333-8333-333333333333', history: [url] } });

  it.each([
    ['http://127.0.0.1:1/x'],
    ['http://localhost:1/x'],
    ['http://[::1]:1/x'],
    ['http://[::ffff:127.0.0.1]:1/x'],
    ['http://0.0.0.0:1/x'],
    ['http://10.0.0.1/x'],
    ['http://192.168.1.1/x'],
    ['http://169.254.169.254/latest/meta-data'],
    ['http://0x7f000001/x'],
    ['http://2130706433/x'],
  ])('are not read from a private address: %s', async (url) => {
    const served = await serveApi([recall]);
    const run = await runOf(served, 'recall', 'x', withHistory(url));
    expect(run.status).toBe('failed');
    expect(run.error?.message).toMatch(/could not be read: it cannot be reached, or its address is private/);
  });

  it('are not followed when they redirect, nor read beyond their limits', async () => {
    const base = await answering((request, response) => {
      if (request.url === '/redirect') response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end();
      else if (request.url === '/large') response.end(`"${'x'.repeat(10_000)}"`);
      else if (request.url === '/html') response.end('<html>');
      else if (request.url === '/odd') response.end('{"parts":5}');
      else if (request.url !== '/slow') response.writeHead(404).end();
    });
    const foreign = { allowNetworks: ['127.0.0.1'], maxSize: 1000 };
    const usual = await serveApi([recall], { foreign });
    const hasty = await serveApi([recall], { foreign: { ...foreign, timeout: 50 } });
    const why = async (path: string, served = usual): Promise<string | undefined> =>
      (
        await runOf(served, 'recall', 'x', {
          session: { ...withHistory(`${base}${path}`).session, id: crypto.randomUUID() },
        })
      ).error?.message;
    expect(await why('/redirect')).toContain('it answered 302');
    expect(await why('/large')).toContain('larger than 1000 characters');
    expect(await why('/html')).toContain('it is not JSON');
    expect(await why('/odd')).toContain('message.parts: expected array');
    expect(await why('/slow', hasty)).toContain('longer than 50 ms');
    expect(await why('/gone')).toContain('it answered 404');
  });
});

describe('a session’s history', () => {
  const session_id = '44444444-4444-4444-8444-444444444444';
  const base = 'https://agents.example.com';

  /** A server of messages with configurable responses. */
  async function elsewhere(answers: Record<string, string>) {
    const asked: string[] = [];
    const url = await answering((request, response) => {
      asked.push(request.url ?? '');
      const body = answers[request.url ?? ''];
      response.writeHead(body === undefined ? 404 : 200).end(body);
    });
    return { asked, url };
  }
  const said = (content: string): string => JSON.stringify({ role: 'user', parts: [{ content }] });

  it('is that of the request’s descriptor for this run, and all of it for later runs', async () => {
    const served = await serveApi([echo, recall]);
    await runOf(served, 'echo', 'one', { session_id });
    await runOf(served, 'echo', 'two', { session_id });
    const whole = await sessionOf(served, session_id);
    const rewound = { ...whole, history: whole.history.slice(0, 2) };
    expect(textOf(await runOf(served, 'recall', 'x', { session: rewound }))).toBe('one,one');
    expect(textOf(await runOf(served, 'recall', 'y', { session: { id: session_id, history: [] } }))).toBe(
      'one,one,two,two,x,one,one',
    );
    const fork = { id: '55555555-5555-4555-8555-555555555555', history: rewound.history };
    expect(textOf(await runOf(served, 'recall', 'z', { session: fork }))).toBe('one,one');
    expect(textOf(await runOf(served, 'recall', 'z', { session_id: fork.id }))).toBe('one,one,z,one,one');
  });

  it('has no duplicates where nodes share a store under several addresses', async () => {
    const store = await openStore('memory:');
    const a = await serveApi([echo, recall], { store, publicUrl: 'https://a.example.com' });
    const b = await serveApi([echo, recall], { store, publicUrl: 'https://b.example.com/base' });
    await runOf(a, 'echo', 'one', { session_id });
    const onA = await sessionOf(a, session_id);
    expect(textOf(await runOf(b, 'recall', 'x', { session: onA }))).toBe('one,one');
    expect((await sessionOf(b, session_id)).history).toHaveLength(4);
  });

  it('omits messages that cannot be read, except for the run that added them, which fails with the URL', async () => {
    const other = await elsewhere({ '/good': said('good'), '/odd': '{"parts":5}' });
    const lines: string[] = [];
    const logger = { level: 'warn', stream: { write: (line: string) => lines.push(line) } };
    const served = await serveApi([echo, recall], { ...loopback, logger });
    const history = [`${other.url}/gone`, `${other.url}/good`, `${other.url}/odd`];
    const bad = await runOf(served, 'recall', 'x', { session: { id: session_id, history } });
    expect([bad.status, bad.error?.data]).toEqual(['failed', { reason: 'resource_refused' }]);
    expect(bad.error?.message).toContain(`${other.url}/gone could not be read: it answered 404`);
    const next = await runOf(served, 'recall', 'y', { session_id });
    // The run that failed is in the history: what was said, and an empty answer.
    expect([next.status, textOf(next)]).toEqual(['completed', 'good,x,']);
    const warned = lines.map((line) => JSON.parse(line)).filter(({ run_id }) => run_id === next.run_id);
    expect(warned.map(({ msg }) => msg)).toEqual([
      expect.stringContaining('/gone could not be read'),
      expect.stringContaining('/odd could not be read: it is not a message: message.parts: expected array'),
    ]);
  });

  it('is not read further after ten messages that cannot be read', async () => {
    const other = await elsewhere({});
    const served = await serveApi([echo, recall], loopback);
    const history = Array.from({ length: 50 }, (_, n) => `${other.url}/${n}`);
    // This agent does not read them, so it does not fail.
    await runOf(served, 'echo', 'own', { session: { id: session_id, history } });
    expect(textOf(await runOf(served, 'recall', 'y', { session_id }))).toBe('own,own');
    expect(other.asked).toEqual(history.slice(0, 10).map((url) => new URL(url).pathname));
  });

  it('has at most a thousand URLs of other servers', async () => {
    const served = await serveApi([echo]);
    const history = (from: number, n: number) => Array.from({ length: n }, (_, at) => `${base}/m/${from + at}`);
    const post = (urls: string[]) =>
      served.post('/runs', ask('echo', 'x', { session: { id: session_id, history: urls } }));
    expect((await post(history(0, 1_001))).status).toBe(422);
    expect((await post(history(0, 600))).status).toBe(200);
    const refused = await post(history(600, 401));
    expect([refused.status, (await refused.json()).message]).toEqual([
      422,
      'session.history: a session has at most 1000 URLs of other servers.',
    ]);
    expect((await post(history(200, 800))).status).toBe(200);
    expect((await sessionOf(served, session_id)).history).toHaveLength(1_000 + 4);
  });

  it('is returned with its newest 10,000 URLs', async () => {
    const store = await openStore('memory:');
    const found = Array.from({ length: 12_000 }, (_, n) => `${base}/m/${n}`);
    const { session } = store;
    store.session = async (id) => {
      const row = await session.call(store, id);
      return row && { ...row, history: found };
    };
    const served = await serveApi([echo], { store });
    await runOf(served, 'echo', 'x', { session_id });
    expect((await sessionOf(served, session_id)).history).toEqual(found.slice(2_000));
  });
});
