import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { map, of, range, throwError } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { recordOf } from '../../../src/http/auth/key-records.ts';
import { agent, askOnce, tokens } from '../../support/agents.ts';
import { alerts, dashboardQueries, rulesFile } from '../../support/dashboard.ts';
import { steadyPort } from '../../support/ports.ts';
import { Prometheus, prometheusThere, promtool } from '../../support/prometheus.ts';
import { Receiver } from '../../support/receiver.ts';
import { ask, listen, type Served } from '../../support/serve.ts';

const key = 'rvk_ygxsYjJe_w0yhHgfH5wdL5cbJe1HKhOV9SIRVv52eofp4fcS0ib14evRTi';
const credentials = { authorization: `Bearer ${key}` };
/** Requests and runs of a minute: the load reaches it. */
const perMinute = 120;

const failing = agent('failing', () => throwError(() => new Error('no')));
const kilobytes = agent('kilobytes', () => range(0, 5_000).pipe(map(() => 'x'.repeat(1_000))));
const quick = agent('quick', () => of('x'));

/** The part of the documentation that says how Prometheus reads the metrics. */
const documented = /```yaml\n(scrape_configs:\n[\s\S]*?)```/.exec(readFileSync('docs/metrics.md', 'utf8'))?.[1] ?? '';

/** What Grafana makes of a query for all jobs and agents. */
const withVariables = (expr: string): string =>
  expr.replaceAll('$__rate_interval', '30s').replace(/\$(job|agent)/g, '.*');

describe.skipIf(!prometheusThere())('a Prometheus that reads the metrics of a server', { timeout: 240_000 }, () => {
  let served: Served;
  let prometheus: Prometheus;
  let metricsUrl: string;
  const receivers: Receiver[] = [];
  const sockets: Socket[] = [];

  beforeAll(async () => {
    receivers.push(await Receiver.open(), await Receiver.open());
    const [, refusing] = receivers;
    if (refusing !== undefined) refusing.answer = () => ({ status: 500 });
    const [port, closed] = [await steadyPort(), await steadyPort()];
    metricsUrl = `http://127.0.0.1:${port}/metrics`;
    served = await listen([askOnce, failing, kilobytes, quick, tokens], {
      auth: { keys: [recordOf(key, { principal: 'load', scopes: ['admin'] })] },
      metrics: { port },
      webhooks: { secrets: ['the master secret of the test of Prometheus'] },
      foreign: { allowNetworks: ['127.0.0.1'] },
      limits: { webhookRetry: 3_600_000, webhookOffAfter: 1 },
      stalledAfter: 200,
      runsPerMinute: perMinute,
    });
    const { scrape_configs: [job] = [] } = parse(documented);
    job.static_configs[0].targets = [`127.0.0.1:${port}`, `127.0.0.1:${closed}`];
    prometheus = await Prometheus.start({
      global: { scrape_interval: '500ms', evaluation_interval: '500ms' },
      rule_files: [resolve(rulesFile)],
      scrape_configs: [job],
    });
    // The increase of a counter is seen where Prometheus has read it before.
    while ((await prometheus.query('rivulet_build_info')).length === 0) await setTimeout(50);
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await prometheus?.stop();
    await served?.app.close();
    await Promise.all(receivers.map((one) => one.close()));
  });

  const post = async (path: string, body: object) => (await served.post(path, body, credentials)).json();

  /** Something of all that the dashboard shows, but no commit that fails. */
  async function makeLoad(): Promise<void> {
    const [taking, refusing] = receivers.map(({ url }) => url);
    await Promise.all([
      served.post('/runs', ask('quick'), { authorization: 'Bearer nonsense' }),
      post('/runs', ask('quick', 'hi', { webhook: { url: taking } })),
      ...Array.from({ length: 4 }, () => post('/runs', ask('failing', 'hi', { webhook: { url: refusing } }))),
    ]);
    const asking = await post('/runs', ask('ask'));
    if (asking.run_id === undefined) return;
    const message = { parts: [{ content: 'yes' }] };
    await post(`/runs/${asking.run_id}`, { await_resume: { type: 'message', message }, mode: 'sync' });
    const { run_id } = await post('/runs', ask('tokens', '20'));
    const resumed = { ...credentials, accept: 'text/event-stream', 'last-event-id': '4' };
    await (await served.get(`/runs/${run_id}/events`, resumed)).text();
  }

  /** A reader that reads nothing of a long run, so that the server drops it. */
  async function stall(): Promise<void> {
    const { run_id } = await post('/runs', ask('kilobytes'));
    const { port, host } = new URL(served.url);
    const client = connect(Number(port), '127.0.0.1');
    sockets.push(client);
    client.on('error', () => {}).pause();
    const headers = `Host: ${host}\r\nAccept: text/event-stream\r\nAuthorization: ${credentials.authorization}`;
    client.write(`GET /runs/${run_id}/events HTTP/1.1\r\n${headers}\r\n\r\n`);
  }

  it('evaluates every query of the dashboard, each with a result', async () => {
    await stall();
    const missing = async (): Promise<string[]> => {
      await makeLoad();
      const found = await Promise.all(
        dashboardQueries.map(async ([title, expr]) => {
          const samples = await prometheus.query(withVariables(expr));
          return samples.some(({ value }) => Number.isFinite(value)) ? [] : [`${title}: ${expr}`];
        }),
      );
      return found.flat();
    };
    await expect.poll(missing, { interval: 200 }).toEqual([]);
    const runs = await prometheus.query('sum by (agent) (increase(rivulet_runs_total{outcome="completed"}[5m]))');
    expect(runs.map(({ metric }) => metric.agent)).toEqual(expect.arrayContaining(['ask', 'quick', 'tokens']));
  });

  it('evaluates every alert without an error, and raises those that the load causes', async () => {
    const unevaluated = async () => (await prometheus.rules()).filter(({ health }) => health !== 'ok');
    await expect.poll(unevaluated).toEqual([]);
    expect((await prometheus.rules()).map(({ name }) => name)).toEqual(alerts.map(({ alert }) => alert));
    const raised = async (): Promise<string[]> => {
      await makeLoad();
      return (await prometheus.rules()).filter(({ state }) => state !== 'inactive').map(({ name }) => name);
    };
    await expect
      .poll(raised, { interval: 200 })
      .toEqual(expect.arrayContaining(['RivuletDown', 'RivuletRunsFail', 'RivuletWebhookUrlOff']));
    expect(await raised()).not.toContain('RivuletStoreDown');
  });

  it('accepts the rules, and the names of the metrics', async () => {
    expect(promtool('rules', rulesFile)).toContain('SUCCESS');
    const input = await (await fetch(metricsUrl)).text();
    const checked = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' });
    expect([checked.status, checked.stdout, checked.stderr]).toEqual([0, '', '']);
  });
});
