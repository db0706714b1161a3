import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newId } from '../../../src/engine/ids.ts';
import { askOnce, echo, Tap } from '../../support/agents.ts';
import { ask, eventsOf, type Served, serve, serveAll } from '../../support/serve.ts';
import { create, tenantNode } from '../../support/tenants.ts';

const served = await serveAll([echo, askOnce], { heartbeat: 600_000, longPollTimeout: 20, durableStreamTimeout: 60 });
const { run_id } = await (await served.post('/runs', ask('echo'))).json();
const events = await eventsOf(served, run_id);
const path = `/runs/${run_id}/stream`;
const end = `000000000000000${events.length}`;

/** The headers of the protocol. */
const streamOf = ({ headers }: Response): Record<string, string> =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('stream-') && name !== 'stream-cursor'));
const closed = { 'stream-next-offset': end, 'stream-up-to-date': 'true', 'stream-closed': 'true' };

const awaiting = async (): Promise<string> => (await (await served.post('/runs', ask('ask'))).json()).run_id;

describe('a read of a stream', () => {
  it.each([
    ['without an offset', ''],
    ['from the beginning', '?offset=-1'],
    ['from the first offset', '?offset=0000000000000000'],
  ])('%s has all events', async (_, query) => {
    const response = await served.get(path + query);
    expect([response.status, await response.json()]).toEqual([200, events]);
    expect(streamOf(response)).toEqual(closed);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  });

  it.each(events.map((_, n) => n))('after event %i has the rest', async (n) => {
    expect(await (await served.get(`${path}?offset=000000000000000${n}`)).json()).toEqual(events.slice(n));
  });

  it('from now on is empty, and not kept by caches', async () => {
    const response = await served.get(`${path}?offset=now`);
    expect([await response.text(), streamOf(response)]).toEqual(['[]', closed]);
    expect([response.headers.get('etag'), response.headers.get('cache-control')]).toEqual([null, 'no-store']);
  });

  it('is not answered again to a client that has it, until the stream grows', async () => {
    const id = await awaiting();
    const open = await served.get(`/runs/${id}/stream`);
    const etag = open.headers.get('etag') ?? '';
    const again = await served.get(`/runs/${id}/stream`, { 'if-none-match': etag });
    expect([again.status, await again.text(), streamOf(again)]).toEqual([304, '', streamOf(open)]);
    await served.post(`/runs/${id}`, { await_resume: { message: { parts: [{ content: 'yes' }] } } });
    const grown = await served.get(`/runs/${id}/stream`, { 'if-none-match': etag });
    expect([grown.status, grown.headers.get('stream-closed')]).toEqual([200, 'true']);
    expect(grown.headers.get('etag')).not.toBe(etag);
  });

  it('says with HEAD where the stream ends, and whether it is closed', async () => {
    const head = async (id: string) => fetch(`${served.url}/runs/${id}/stream`, { method: 'HEAD' });
    const { 'stream-up-to-date': _, ...rest } = closed;
    expect(streamOf(await head(run_id))).toEqual(rest);
    expect(streamOf(await head(await awaiting()))).not.toHaveProperty('stream-closed');
    expect((await head(newId())).status).toBe(404);
  });
});

describe('a long poll', () => {
  it('ends without events after longPollTimeout, whatever the time between heartbeats', async () => {
    const id = await awaiting();
    const { headers } = await fetch(`${served.url}/runs/${id}/stream`, { method: 'HEAD' });
    const offset = headers.get('stream-next-offset') ?? '';
    for (const from of [offset, 'now']) {
      const response = await served.get(`/runs/${id}/stream?offset=${from}&live=long-poll`);
      expect(response.status).toBe(204);
      expect(streamOf(response)).toEqual({ 'stream-next-offset': offset, 'stream-up-to-date': 'true' });
    }
  });

  it('of a closed stream ends at once', async () => {
    const response = await served.get(`${path}?offset=${end}&live=long-poll`);
    expect([response.status, streamOf(response)]).toEqual([204, closed]);
  });

  it('gives each client a larger cursor than it has sent', async () => {
    const cursorOf = async (cursor: string) =>
      Number((await served.get(`${path}?offset=-1&live=long-poll${cursor}`)).headers.get('stream-cursor'));
    const first = await cursorOf('');
    expect(await cursorOf(`&cursor=${first + 5}`)).toBe(first + 6);
    expect(await cursorOf('&cursor=none')).toBeGreaterThanOrEqual(first);
  });

  it('ends when the server stops', async () => {
    const tap = new Tap();
    const own = await serve([tap.agent]);
    const { run_id: id } = await (await own.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
    await tap.started();
    const held = own.get(`/runs/${id}/stream?offset=now&live=long-poll`).then(
      ({ status }) => status,
      () => 'broken',
    );
    await new Promise((resolve) => own.app.server.once('request', resolve));
    await own.app.close();
    // The run has failed, or nothing more is known of it.
    expect([200, 204, 503, 'broken']).toContain(await held);
  });
});

describe('Server-Sent Events of a stream', () => {
  const textOf = async (node: Served, url: string) => (await node.get(url)).text();

  it('have a control event after each data event, and the last one closes the stream', async () => {
    const text = await textOf(served, `${path}?offset=-1&live=sse`);
    const lines = text.split('\n').filter((line) => line.startsWith('data: '));
    expect(lines.length).toBe(2 * events.length);
    const data = lines.filter((_, index) => index % 2 === 0).map((line) => JSON.parse(line.slice(6)));
    const controls = lines.filter((_, index) => index % 2 === 1).map((line) => JSON.parse(line.slice(6)));
    expect(data).toEqual(events.map((event) => [event]));
    expect(controls.map((one) => one.streamNextOffset)).toEqual(events.map((_, n) => `000000000000000${n + 1}`));
    expect(controls.at(-1)).toEqual({ streamNextOffset: end, streamClosed: true, upToDate: true });
    for (const control of controls.slice(0, -1)) expect(control).toMatchObject({ streamCursor: expect.any(String) });
  });

  it('of a closed stream without further events are one control event', async () => {
    for (const offset of [end, 'now']) {
      expect(await textOf(served, `${path}?offset=${offset}&live=sse`)).toBe(
        `event: control\ndata: {"streamNextOffset":"${end}","upToDate":true,"streamClosed":true}\n\n`,
      );
    }
  });

  it('begin with a control event for a client that is up to date, and end after durableStreamTimeout', async () => {
    const id = await awaiting();
    const text = await textOf(served, `/runs/${id}/stream?offset=now&live=sse&cursor=999999999`);
    expect(text).toMatch(
      /^retry: \d+\nevent: control\ndata: \{"streamNextOffset":"\d{16}","streamCursor":"1000000000","upToDate":true\}\n\n$/,
    );
  });
});

describe('a request that no stream can answer', () => {
  it.each([
    ['?offset=1', 400],
    ['?offset=', 400],
    ['?offset=0000000000000099', 400],
    ['?offset=9999999999999999', 400],
    ['?offset=-1&offset=now', 400],
    ['?live=sse', 400],
    ['?live=long-poll', 400],
    ['?offset=-1&live=true', 400],
    ['?offset=-1&live=sse&live=sse', 400],
  ])('%s is answered with %i', async (query, status) => {
    const response = await served.get(path + query);
    expect([response.status, (await response.json()).code]).toEqual([status, 'invalid_input']);
  });

  it.each(['PUT', 'POST', 'PATCH', 'DELETE'])('%s is not allowed', async (method) => {
    const response = await fetch(served.url + path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'HEAD, GET']);
  });

  it.each([newId(), 'x', '%00', '__proto__'])('for the run %s finds none', async (id) => {
    expect((await served.get(`/runs/${id}/stream`)).status).toBe(404);
  });

  it('is never the server’s fault', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom('-1', 'now', end, 'sse', 'long-poll', '0', '[]', '\u0000'),
    );
    const pair = fc.tuple(fc.constantFrom('offset', 'live', 'cursor', 'ticket', 'x', '__proto__', 'offset[]'), text);
    await fc.assert(
      fc.asyncProperty(fc.array(pair, { maxLength: 5 }), fc.constantFrom('GET', 'HEAD'), async (pairs, method) => {
        const query = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
        const { statusCode } = await served.app.inject({ method, url: `${path}?${query}` });
        expect([200, 204, 400]).toContain(statusCode);
      }),
      { numRuns: 200 },
    );
  });

  it('of another owner finds none', async () => {
    const node = await tenantNode();
    const { run_id: hers } = await create(node.as('alice'), 'echo');
    for (const method of ['GET', 'HEAD']) {
      for (const query of ['', '?offset=now', '?offset=-1&live=long-poll', '?offset=-1&live=sse']) {
        const [own, theirs, none] = await Promise.all([
          node.as('alice')(`/runs/${hers}/stream${query}`, { method }),
          node.as('bob')(`/runs/${hers}/stream${query}`, { method }),
          node.as('bob')(`/runs/${newId()}/stream${query}`, { method }),
        ]);
        expect([own?.status, theirs?.status, none?.status]).toEqual([200, 404, 404]);
      }
    }
  });

  it('without a key is refused, and a ticket of the run is enough', async () => {
    const node = await tenantNode();
    const alice = node.as('alice');
    const { run_id: hers } = await create(alice, 'echo');
    const { url } = JSON.parse((await alice(`/runs/${hers}/stream-ticket`, { method: 'POST' })).text);
    const ticket = new URL(url, node.url).searchParams.get('ticket');
    const read = (query: string) => fetch(`${node.url}/runs/${hers}/stream?offset=-1${query}`);
    expect((await read('')).status).toBe(401);
    expect((await read(`&live=sse&ticket=${ticket}`)).status).toBe(200);
  });
});
