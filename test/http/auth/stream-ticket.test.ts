import { EventSource } from 'eventsource';
import { concatMap, interval, map, range, take } from 'rxjs';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeApiKey } from '../../../src/http/auth/api-key.ts';
import { recordOf } from '../../../src/http/auth/key-records.ts';
import { Signatures } from '../../../src/http/auth/signatures.ts';
import { StreamTickets } from '../../../src/http/auth/stream-ticket.ts';
import type { AuthOptions, Event, Principal } from '../../../src/index.ts';
import { agent, never, Tap } from '../../support/agents.ts';
import { CuttingProxy } from '../../support/cutting-proxy.ts';
import { ask, type Served, serve } from '../../support/serve.ts';

const alice = makeApiKey().key;
const bob = makeApiKey().key;
const root = makeApiKey().key;
const keys = [
  recordOf(alice, { principal: 'alice' }),
  recordOf(bob, { principal: 'bob' }),
  recordOf(root, { principal: 'root', scopes: ['admin'] }),
];
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const accept = { accept: 'text/event-stream' };
const secrets = ['the first secret of these tests, long', 'the other secret of these tests, long'];

const slow = agent('slow', () =>
  interval(1).pipe(
    take(100),
    concatMap((n) => range(n * 10, 10)),
    map((n) => `t${n} `),
  ),
);

const start = (auth: Partial<AuthOptions> = {}, agents = [slow, never]): Promise<Served> =>
  serve(agents, { docs: false, playground: false, retry: 10, auth: { keys, ...auth } });

async function runOf(served: Served, agent_name = 'never', headers: Record<string, string> = {}): Promise<string> {
  const response = await served.post('/runs', ask(agent_name, 'go', { mode: 'async' }), {
    ...bearer(alice),
    ...headers,
  });
  return (await response.json()).run_id;
}

async function ticketOf(served: Served, run_id: string, key = alice): Promise<{ url: string; expires_at: string }> {
  const response = await served.post(`/runs/${run_id}/stream-ticket`, undefined, bearer(key));
  expect(response.status).toBe(200);
  expect(response.headers.get('cache-control')).toBe('no-store');
  return response.json();
}

/** Status and reason of the answer; 0 where the connection broke. */
async function read(served: Served, url: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(new URL(url, served.url), { method, headers }).catch(() => undefined);
  if (response === undefined) return [0];
  if (response.ok) {
    await response.body?.cancel();
    return [response.status];
  }
  return [response.status, (await response.json()).data.reason];
}

afterEach(() => void vi.useRealTimers());

describe('a stream ticket', () => {
  it('lets an EventSource follow a run over many broken connections', async () => {
    const served = await start();
    const { url } = await ticketOf(served, await runOf(served, 'slow'));
    const proxy = await CuttingProxy.open(
      served.url,
      Array.from({ length: 10 }, (_, n) => 2_500 + n * 137),
    );
    const ids: number[] = [];
    await new Promise<void>((resolve) => {
      const source = new EventSource(new URL(url, proxy.url));
      onTestFinished(() => source.close());
      source.onmessage = ({ data, lastEventId }) => {
        ids.push(Number(lastEventId));
        const event: Event = JSON.parse(data);
        if (event.type === 'run.completed') resolve();
      };
    });
    await proxy.close();
    expect(proxy.cuts).toBe(10);
    expect(ids).toEqual(Array.from({ length: ids.length }, (_, index) => index + 1));
    expect(ids.length).toBeGreaterThan(1_000);
  });

  it('is for reading the events of its run, and nothing else', async () => {
    const served = await start();
    const [one, other] = [await runOf(served), await runOf(served)];
    const { url } = await ticketOf(served, one);
    const query = new URL(url, served.url).search;
    expect(await read(served, url, accept)).toEqual([200]);
    expect(await read(served, url)).toEqual([200]);
    expect((await served.get(url)).headers.get('cache-control')).toBe('no-store');
    // A browser may send credentials for a proxy.
    expect(await read(served, url, { ...accept, authorization: 'Basic x' })).toEqual([200]);
    expect(await read(served, url.replace(one, one.toUpperCase()), accept)).toEqual([200]);
    for (const path of [`/runs/${other}/events`, `/runs/${crypto.randomUUID()}/events`]) {
      expect(await read(served, `${path}${query}`, accept)).toEqual([401, 'ticket_refused']);
    }
    for (const path of ['/runs', `/runs/${one}`, '/agents', '/sessions/x', `/resources/${one}`]) {
      expect(await read(served, `${path}${query}`)).toEqual([401, 'unauthenticated']);
    }
    for (const [method, path] of [
      ['POST', `/runs/${one}/cancel`],
      ['POST', `/runs/${one}/stream-ticket`],
      ['POST', `/runs/${one}`],
      ['POST', url],
      ['DELETE', `/runs/${one}`],
    ]) {
      const [status] = await read(served, `${path?.split('?')[0]}${query}`, {}, method);
      expect([method, path, status]).toEqual([method, path, 401]);
    }
  });

  it('is given only to callers that may read the run', async () => {
    const served = await start();
    const run_id = await runOf(served);
    const post = async (id: string, headers: Record<string, string>) =>
      (await served.post(`/runs/${id}/stream-ticket`, undefined, headers)).status;
    expect(await post(run_id, bearer(bob))).toBe(404);
    expect(await post(crypto.randomUUID(), bearer(alice))).toBe(404);
    expect(await post(run_id, {})).toBe(401);
    expect(await read(served, (await ticketOf(served, run_id, root)).url, accept)).toEqual([200]);
  });

  it('is refused where it is forged, cut, sent twice, or a key', async () => {
    const served = await start();
    const run_id = await runOf(served);
    const { url } = await ticketOf(served, run_id);
    const [path = '', ticket = ''] = url.split('?ticket=');
    const [text = '', mac = ''] = ticket.slice('rvs_'.length).split('.');
    const payload = JSON.parse(Buffer.from(text, 'base64url').toString());
    const changed = (change: object) => Buffer.from(JSON.stringify({ ...payload, ...change })).toString('base64url');
    for (const wrong of [
      '',
      'rvs_.',
      alice,
      ticket.slice(0, -1),
      `${ticket}x`,
      `rvs_${text}.`,
      `rvs_${changed({ exp: payload.exp + 1 })}.${mac}`,
      `rvs_${changed({ admin: true })}.${mac}`,
      `rvs_${changed({ id: 'bob' })}.${mac}`,
      `${ticket}&ticket=${ticket}`,
      'x'.repeat(6_000),
    ]) {
      const [status] = await read(served, `${path}?ticket=${wrong}`, accept);
      expect([401, 429]).toContain(status);
    }
  });

  it('ends an EventSource with an error when it has expired, so that its page asks for another one', async () => {
    const served = await start();
    const run_id = await runOf(served);
    // In the past: ids that are made in the future would stay there for all tests of this process.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 15 * 60_000 });
    const { url } = await ticketOf(served, run_id);
    vi.useRealTimers();
    const source = new EventSource(new URL(url, served.url));
    const error = await new Promise<{ code?: number | undefined }>((resolve) => {
      source.onerror = resolve;
    });
    expect(error.code).toBe(401);
    expect(source.readyState).toBe(EventSource.CLOSED);
    expect(await read(served, url, accept)).toEqual([401, 'ticket_refused']);
  });

  it('is not counted as a reader: the run goes on when its holder leaves', async () => {
    const tap = new Tap();
    const served = await start({}, [tap.agent]);
    const run_id = await runOf(served, 'tap', { 'on-disconnect': 'cancel' });
    await tap.started();
    const { url } = await ticketOf(served, run_id);
    const follower = new AbortController();
    const watched = await fetch(new URL(url, served.url), { headers: accept, signal: follower.signal });
    const statusOf = async () => (await (await served.get(`/runs/${run_id}`, bearer(alice))).json()).status;
    follower.abort();
    await watched.text().catch(() => {});
    // Another reader with a ticket comes and goes, so the server has seen the first one leave.
    await read(served, url, accept);
    expect(await statusOf()).toBe('in-progress');
    // A reader that has the key counts, and does cancel it.
    await read(served, `/runs/${run_id}/events`, { ...accept, ...bearer(alice) });
    await expect.poll(statusOf).toBe('cancelled');
  });

  it('lives for 15 minutes, on all nodes that have the same secret, and through a change of secrets', async () => {
    const principal: Principal = { id: 'alice', kind: 'key', tenant: 'acme', scopes: ['runs:read', 'runs:write'] };
    const [first = '', second = ''] = secrets;
    const { ticket, expires_at } = new StreamTickets(new Signatures([first])).issue(principal, 'r1');
    expect(Math.abs(Date.parse(expires_at) - Date.now() - 900_000)).toBeLessThan(10_000);
    const read = { run_id: 'r1', principal: { id: 'alice', kind: 'key', tenant: 'acme', scopes: ['runs:read'] } };
    expect(new StreamTickets(new Signatures([first])).read(ticket)).toEqual(read);
    expect(new StreamTickets(new Signatures([second, first])).read(ticket)).toEqual(read);
    expect(new StreamTickets(new Signatures([second])).read(ticket)).toBeUndefined();
    expect(new StreamTickets(new Signatures()).read(ticket)).toBeUndefined();
  });

  it('is not needed where authentication is off', async () => {
    const served = await serve([never], { docs: false, playground: false });
    const run_id = await runOf(served);
    const { url } = await (await served.post(`/runs/${run_id}/stream-ticket`)).json();
    expect(url).toBe(`/runs/${run_id}/events`);
    expect(await read(served, url, accept)).toEqual([200]);
  });
});

describe('a stream ticket as a cookie', () => {
  async function cookieOf(served: Served, run_id: string) {
    const response = await served.post(`/runs/${run_id}/stream-ticket?cookie=true`, undefined, bearer(alice));
    const set = response.headers.get('set-cookie') ?? '';
    return { url: (await response.json()).url, set, cookie: set.split(';')[0] ?? '' };
  }

  it('is for the events of its run, and out of reach for scripts and other sites', async () => {
    const served = await start();
    const run_id = await runOf(served);
    const { url, set, cookie } = await cookieOf(served, run_id);
    expect(url).toBe(`/runs/${run_id}/events`);
    expect(set).toMatch(
      /^rivulet_ticket=rvs_[\w.-]+; Path=\/runs\/[0-9a-f-]{36}\/events; HttpOnly; Secure; SameSite=Strict$/,
    );
    expect(set).toContain(`Path=${url};`);
    expect(await read(served, url, { ...accept, cookie: `a=b; ${cookie}; c=d` })).toEqual([200]);
    expect(await read(served, `/runs/${run_id}`, { cookie })).toEqual([401, 'unauthenticated']);
  });

  it('breaks the connection when it is refused, so that an EventSource reconnects and finds a renewed one', async () => {
    const served = await start();
    const [run_id, other] = [await runOf(served), await runOf(served)];
    const [{ url, cookie: first }, { cookie: wrong }] = [await cookieOf(served, run_id), await cookieOf(served, other)];
    let cookie = first;
    let refused = 0;
    const source = new EventSource(new URL(url, served.url), {
      fetch: (input, init) => {
        const answer = fetch(input, { ...init, headers: { ...init.headers, cookie } });
        answer.catch(() => {
          refused += 1;
        });
        return answer;
      },
    });
    onTestFinished(() => source.close());
    const opened = () => new Promise((resolve) => source.addEventListener('open', resolve, { once: true }));
    await opened();
    cookie = wrong;
    served.app.server.closeAllConnections();
    await expect.poll(() => refused).toBeGreaterThan(1);
    expect(source.readyState).toBe(EventSource.CONNECTING);
    cookie = (await cookieOf(served, run_id)).cookie;
    await opened();
  });
});
