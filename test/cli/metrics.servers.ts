import { once } from 'node:events';
import { get } from 'node:http';
import { afterAll, describe, expect, it } from 'vitest';
import { makeProject } from '../support/project.ts';
import { scrape, scrapeUntil } from '../support/scrape.ts';
import { redisPlace } from '../support/servers.ts';
import { agentFile, createRun, metricsOf, startRivulet } from './server-project.ts';

const planner = `async function* (_, context) {
  yield String(await context.step('count', () => [1]));
  yield (await context.call('echo', 'called')).parts[0].content;
  yield (await context.await('Go on?')).message.parts[0].content;
}`;
const { folder, remove } = makeProject({
  'agents/echo.js': agentFile('echo'),
  'agents/planner.js': agentFile('planner', planner).replace(/\);?\s*$/, ', { durable: true });'),
});
afterAll(remove);

const place = await redisPlace();
afterAll(() => place?.remove());

describe.skipIf(place === undefined)('the metrics of a server and its workers', () => {
  it('have a run that began on one worker and ended on another after its reply, each part once', async () => {
    const store = ['--store', place?.url ?? '', '--metrics-port', '0'];
    const server = startRivulet(folder, ['serve', '--no-worker', '--port', '0', ...store]);
    const url = await server.url();
    const first = startRivulet(folder, ['worker', ...store]);
    const firstMetrics = await metricsOf(first);
    expect(await (await fetch(`${firstMetrics}/ready`)).json()).toEqual({ status: 'ready' });
    const { run_id, status } = await createRun(url, 'planner');
    expect(status).toBe('awaiting');
    const before = await scrape(firstMetrics);
    expect(before.value('rivulet_runs', { state: 'awaiting' })).toBe(1);
    expect(before.value('rivulet_parts_total', { agent: 'planner' })).toBe(2);
    expect(await first.stop()).toBe(0);

    const second = startRivulet(folder, ['worker', ...store]);
    const secondMetrics = await metricsOf(second);
    const message = { parts: [{ content: 'yes' }] };
    const body = JSON.stringify({ await_resume: { type: 'message', message }, mode: 'sync' });
    const headers = { 'content-type': 'application/json' };
    const run = await (await fetch(`${url}/runs/${run_id}`, { method: 'POST', headers, body })).json();
    expect(run.status).toBe('completed');
    const ended = { agent: 'planner', outcome: 'completed' };
    const after = await scrapeUntil(secondMetrics, (now) => now.value('rivulet_runs_total', ended) === 1);
    // What the second execution repeats was counted by the first one.
    expect(after.value('rivulet_parts_total', { agent: 'planner' })).toBe(1);
    expect(after.value('rivulet_reentries_total', { agent: 'planner' })).toBe(1);
    expect(after.value('rivulet_time_to_first_part_seconds', { agent: 'planner' })).toBe(0);
    expect(after.value('rivulet_build_info', { store: 'redis' })).toBe(1);
    // The server took the reply, and ended no run.
    const served = await scrape(await metricsOf(server));
    expect(served.value('rivulet_await_seconds', { agent: 'planner' })).toBe(1);
    expect(served.value('rivulet_runs_total')).toBeUndefined();
    expect(served.value('rivulet_http_requests_total', { method: 'POST', route: '/runs/:run_id' })).toBe(1);
    expect((await fetch(`${url}/metrics`)).status).toBe(404);
    expect([await second.stop(), await server.stop()]).toEqual([0, 0]);
  });

  it('refuse other host names at a port of this computer, and say when the port is in use', async () => {
    const server = startRivulet(folder, ['serve', '--port', '0', '--store', 'memory:', '--metrics-port', '0']);
    const { port } = new URL(await metricsOf(server));
    const foreign = get({ port, path: '/metrics', headers: { host: 'evil.example' } });
    const [answer] = await once(foreign, 'response');
    expect(answer.resume().statusCode).toBe(421);
    const again = ['serve', '--port', '0', '--store', 'memory:', '--metrics-port', port];
    const other = startRivulet(folder, again);
    expect(await other.ended()).toBe(1);
    expect(other.err).toContain(`the metrics cannot be served at port ${port} of 127.0.0.1 (EADDRINUSE)`);
    expect(await server.stop()).toBe(0);
  });
});

describe('the log of rivulet serve', () => {
  it('is JSON or, if asked for, lines to read without control characters', async () => {
    const lines = async (format: string): Promise<string> => {
      const server = startRivulet(folder, ['serve', '--port', '0', '--store', 'memory:', '--log-format', format]);
      const url = await server.url();
      await (await fetch(`${url}/agents/\u009b31mred`)).text();
      while (!server.out.includes('agent_unknown')) await once(server.child.stdout ?? server.child, 'data');
      expect(await server.stop()).toBe(0);
      return server.out;
    };
    const json = (await lines('json')).split('\n').find((line) => line.includes('agent_unknown')) ?? '';
    expect(JSON.parse(json)).toMatchObject({ msg: 'request', status: 404, reason: 'agent_unknown' });
    const pretty = await lines('pretty');
    expect(pretty).toMatch(/INFO {2}request .* status=404 .* reason=agent_unknown/);
    expect(pretty).not.toContain('\u009b');
  });
});
