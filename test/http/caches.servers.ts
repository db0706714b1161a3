import { describe, expect, it, onTestFinished } from 'vitest';
import { makeApiKey } from '../../src/http/auth/api-key.ts';
import { recordOf } from '../../src/http/auth/key-records.ts';
import { echo, never } from '../support/agents.ts';
import { steadyPort } from '../support/ports.ts';
import { proxyKinds } from '../support/proxies/kinds.ts';
import { startProxy, versionOf } from '../support/proxies/proxy.ts';
import { ask, serve } from '../support/serve.ts';

// It keeps answers of two minutes by its own rules, and knows of the callers of a server only cookies and `Authorization`.
const varnish = proxyKinds.find(({ name }) => name === 'Varnish');
if (varnish === undefined) throw new Error('there is no kind of proxy for Varnish');
const isThere = versionOf(varnish) !== undefined;
if (!isThere && process.env.CI === 'true') throw new Error('there is no varnishd; install varnish');
if (!isThere) console.warn('\nSKIPPED: tests behind a shared cache, because there is no Varnish\n');

/** A server with the keys of two callers, and the address of a shared cache in front of it. */
async function cached() {
  const [alice, bob] = [makeApiKey().key, makeApiKey().key];
  const keys = [alice, bob].map((key, index) =>
    recordOf(key, { principal: `caller ${index}`, scopes: ['agents:read', 'runs:write', 'runs:read'] }),
  );
  const served = await serve([echo, never], { auth: { keys } });
  const node = Number(new URL(served.url).port);
  const ports = { port: await steadyPort(), tlsPort: await steadyPort(), nodes: [node, node] as const };
  if (varnish === undefined) throw new Error('there is no Varnish');
  const proxy = await startProxy(varnish, ports);
  onTestFinished(proxy.stop);
  const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`http://127.0.0.1:${ports.port}${path}`, { headers });
  return { served, get, own: { 'x-api-key': alice }, other: { 'x-api-key': bob } };
}

describe.skipIf(!isThere)('behind a shared cache with its own rules', () => {
  it('a run is given to its caller alone, and each poll shows its state', async () => {
    const { served, get, own, other } = await cached();
    const created = await served.post('/runs', ask('never', 'a', { mode: 'async' }), own);
    const { run_id } = await created.json();
    const statusOf = async () => (await (await get(`/runs/${run_id}`, own)).json()).status;
    await expect.poll(statusOf).toBe('in-progress');
    for (const path of [`/runs/${run_id}`, `/runs/${run_id}/events`]) {
      expect((await get(path, own)).status).toBe(200);
      expect([(await get(path, other)).status, (await get(path)).status]).toEqual([404, 401]);
    }
    expect(await (await get('/runs', own)).json()).toMatchObject({ runs: [{ run_id }] });
    expect(await (await get('/runs', other)).json()).toEqual({ runs: [] });
    await served.post(`/runs/${run_id}/cancel`, undefined, own);
    await expect.poll(statusOf).toBe('cancelled');
  });

  it('a reader gets the form and the place that it asked for', async () => {
    const { served, get, own } = await cached();
    const { run_id } = await (await served.post('/runs', ask('echo', 'a', { mode: 'sync' }), own)).json();
    const path = `/runs/${run_id}/events`;
    const json = await (await get(path, own)).json();
    const stream = { ...own, accept: 'text/event-stream' };
    const ended = await get(path, { ...stream, 'last-event-id': String(json.events.length) });
    expect(ended.status).toBe(204);
    const whole = await get(path, stream);
    expect([whole.status, await whole.text()]).toEqual([200, expect.stringContaining('run.completed')]);
    expect((await get(path, own)).headers.get('content-type')).toContain('application/json');
  });
});
