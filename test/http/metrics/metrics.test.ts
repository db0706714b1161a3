import { connect } from 'node:net';
import { map, of, range, throwError } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { madeAt } from '../../../src/engine/ids.ts';
import { defineAgent } from '../../../src/index.ts';
import { MemoryStore } from '../../../src/stores/memory/memory-store.ts';
import { agent, echo, never, tokens } from '../../support/agents.ts';
import { processorTime } from '../../support/processor-time.ts';
import { Receiver } from '../../support/receiver.ts';
import { scrape, scrapeUntil } from '../../support/scrape.ts';
import { ask, finished, type Served, serveApi } from '../../support/serve.ts';

/** A durable agent with a step, a call and a question. */
const planner = defineAgent(
  { name: 'planner', description: 'Asks before it goes on.' },
  async function* (_, context) {
    yield `${await context.step('count', () => of(1))} `;
    yield* [(await context.call('echo', 'called')).parts.map(({ content }) => content).join('')];
    yield (await context.await('Go on?')).message.parts[0]?.content ?? '';
    context.usage({ tokens: 40 });
  },
  { durable: true },
);
const failing = agent('failing', () => throwError(() => new Error('no')));

const reply = (text: string): object => ({
  await_resume: { type: 'message', message: { parts: [{ content: text }] } },
  mode: 'sync',
});

const ended = (agent_name: string, outcome: string, error_code = '') =>
  ['rivulet_runs_total', { agent: agent_name, outcome, error_code }] as const;

describe('metrics', () => {
  it('count a run with a step, a call, a question and its reply, with its times', async () => {
    const served = await serveApi([planner, echo], { metrics: true });
    const run = await (await served.post('/runs', ask('planner'))).json();
    expect(run.status).toBe('awaiting');
    // By its id, which may be ahead of the clock where a process makes thousands in a millisecond.
    const age = (): number => Math.max(0, (Date.now() - madeAt(run.run_id)) / 1_000);
    const before = age();
    const during = await scrape(served.url);
    expect(during.value('rivulet_runs', { state: 'awaiting' })).toBe(1);
    expect(during.value('rivulet_node_runs', { state: 'awaiting' })).toBe(1);
    const oldest = during.value('rivulet_runs_oldest_seconds', { state: 'awaiting' });
    expect(oldest).toBeGreaterThanOrEqual(before);
    expect(oldest).toBeLessThanOrEqual(age());
    expect(during.value('rivulet_parts_total', { agent: 'planner' })).toBe(2);
    expect(during.value('rivulet_runs_total', { agent: 'planner' })).toBeUndefined();

    expect((await (await served.post(`/runs/${run.run_id}`, reply('yes'))).json()).status).toBe('completed');
    const after = await scrapeUntil(served.url, (found) => found.value(...ended('planner', 'completed')) === 1);
    for (const state of ['queued', 'running', 'awaiting']) expect(after.value('rivulet_runs', { state })).toBe(0);
    const of_planner = { agent: 'planner' };
    expect(after.value('rivulet_parts_total', of_planner)).toBe(3);
    expect(after.value('rivulet_events_total', of_planner)).toBe(await eventCount(served, run.run_id));
    expect(after.value('rivulet_tokens_total', of_planner)).toBe(40);
    expect(after.value('rivulet_await_seconds', of_planner)).toBe(1);
    expect(after.value('rivulet_time_to_first_part_seconds', of_planner)).toBe(1);
    expect(after.value('rivulet_queue_seconds', of_planner)).toBe(1);
    // The time of the question would make the mean useless.
    expect(after.value('rivulet_time_per_part_seconds', of_planner)).toBe(0);
    const outcome = { agent: 'planner', outcome: 'completed' };
    expect(after.value('rivulet_run_duration_seconds', outcome)).toBe(1);
    // A called agent is a part of the run, not a run.
    expect(after.value('rivulet_runs_total', { agent: 'echo' })).toBeUndefined();
    expect(after.value('rivulet_store_up', { store: 'memory' })).toBe(1);
    expect(after.value('rivulet_store_commit_duration_seconds', { store: 'memory' })).toBeGreaterThan(0);
    expect(after.value('rivulet_agent_files_broken')).toBe(0);
    expect(after.value('rivulet_build_info', { node: process.versions.node, store: 'memory' })).toBe(1);
  });

  it('name the outcome and the error of a run that failed, was cancelled or took too long', async () => {
    const limits = { idleTimeout: 50, sweepInterval: 10 };
    const served = await serveApi([failing, never], { metrics: true });
    await served202(served, 'failing');
    const { run_id } = await served202(served, 'never');
    await served.post(`/runs/${run_id}/cancel`);
    const found = await scrapeUntil(
      served.url,
      (now) =>
        now.value(...ended('never', 'cancelled')) === 1 && now.value(...ended('failing', 'failed', '_other')) === 1,
    );
    expect(found.labels('rivulet_runs_total', 'outcome')).toEqual(['cancelled', 'failed']);
    const strict = await serveApi([never], { metrics: true, limits });
    await served202(strict, 'never');
    await scrapeUntil(strict.url, (now) => now.value(...ended('never', 'timed_out', 'idle_timeout')) === 1);
  });

  it('have one label for all agents that the server does not host', async () => {
    const store = new MemoryStore();
    const first = await serveApi([planner, echo], { store });
    const runs = [await served202(first, 'planner'), await served202(first, 'planner')];
    for (const { run_id } of runs) await awaits(first, run_id);
    await first.app.close();
    const second = await serveApi([echo], { store, metrics: true });
    for (const { run_id } of runs) expect((await second.post(`/runs/${run_id}/cancel`)).status).toBe(202);
    const found = await scrapeUntil(second.url, (now) => now.value(...ended('_other', 'cancelled')) === 2);
    expect(found.labels('rivulet_runs_total', 'agent')).toEqual(['_other']);
    expect(found.labels('rivulet_events_total', 'agent')).toEqual(['_other']);
    await second.get('/runs/nonsense/of/this?kind=1');
    const { run_id } = await served202(second, 'echo');
    await finished(second, run_id);
    const routes = (await scrape(second.url)).labels('rivulet_http_requests_total', 'route');
    expect(routes.every((route) => route === '_other' || /^\/(:?[a-z_]+\/?)*$/.test(route))).toBe(true);
    expect(routes).not.toContain(`/runs/${run_id}`);
  });

  it('count a stream that is open, whose client has left, and that continues after a cursor', async () => {
    const served = await serveApi([never, tokens], { metrics: true });
    const { run_id } = await served202(served, 'never');
    const leave = new AbortController();
    const headers = { accept: 'text/event-stream' };
    const stream = await fetch(`${served.url}/runs/${run_id}/events`, { headers, signal: leave.signal });
    expect((await scrape(served.url)).value('rivulet_streams')).toBe(1);
    leave.abort();
    await stream.text().catch(() => undefined);
    const left = await scrapeUntil(served.url, (now) => now.value('rivulet_streams') === 0);
    const route = { route: '/runs/:run_id/events', status: '2xx' };
    expect(left.value('rivulet_http_requests_total', route)).toBe(1);
    // Streams would hide how long other requests take.
    expect(left.value('rivulet_http_request_duration_seconds', route)).toBeUndefined();
    expect(left.value('rivulet_streams_total', { mode: 'events' })).toBe(1);
    expect(left.value('rivulet_stream_resumes_total')).toBe(0);

    const long = await served202(served, 'tokens', '20');
    await finished(served, long.run_id);
    const last = await eventCount(served, long.run_id);
    await (await served.get(`/runs/${long.run_id}/events`, { ...headers, 'last-event-id': '4' })).text();
    const resumed = await scrape(served.url);
    expect(resumed.value('rivulet_stream_resumes_total')).toBe(1);
    expect(resumed.sum('rivulet_stream_gap_events')).toBe(last - 4);
  });

  it('count a reader that was dropped because it read nothing', async () => {
    const kilobytes = agent('kilobytes', () => range(0, 5_000).pipe(map(() => 'x'.repeat(1_000))));
    const served = await serveApi([kilobytes], { metrics: true, stalledAfter: 100 });
    const created = await served.post('/runs', ask('kilobytes'));
    await created.body?.cancel();
    const run_id = created.headers.get('run-id');
    const { port, host } = new URL(served.url);
    const client = connect(Number(port), '127.0.0.1');
    onTestFinished(() => void client.destroy());
    client.on('error', () => {}).pause();
    client.write(`GET /runs/${run_id}/events HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream\r\n\r\n`);
    await scrapeUntil(served.url, (now) => now.value('rivulet_streams_dropped_total', { reason: 'stalled' }) === 1);
  });

  it('count requests that were refused, by the reason', async () => {
    const served = await serveApi([never], { metrics: true, limits: { running: 1 } });
    await served202(served, 'never');
    expect((await served.post('/runs', ask('never'))).status).toBe(503);
    await scrapeUntil(served.url, (now) => now.value('rivulet_requests_refused_total', { reason: 'too_busy' }) === 1);
  });

  it('report the store as down while it does not answer', async () => {
    const store = new MemoryStore();
    const served = await serveApi([echo], { store, metrics: true });
    store.openRuns = () => Promise.reject(new Error('away'));
    const found = await scrape(served.url);
    expect(found.value('rivulet_store_up', { store: 'custom' })).toBe(0);
    expect(found.value('rivulet_runs', { state: 'queued' })).toBeUndefined();
    expect(found.value('rivulet_webhook_pending')).toBeUndefined();
  });

  it('count the webhooks that wait for an attempt, with the age of the oldest', async () => {
    const to = await Receiver.open();
    onTestFinished(() => to.close());
    to.answer = () => ({ status: 503 });
    const served = await serveApi([echo], {
      metrics: true,
      webhooks: { secrets: ['the master secret of the test of metrics'] },
      foreign: { allowNetworks: ['127.0.0.1'] },
      limits: { webhookRetry: 3_600_000 },
    });
    expect((await scrape(served.url)).value('rivulet_webhook_oldest_seconds')).toBe(0);
    const began = Date.now();
    const { run_id } = await (await served.post('/runs', ask('echo', 'hi', { webhook: { url: to.url } }))).json();
    const retried = { outcome: 'retried' };
    const found = await scrapeUntil(served.url, (now) => now.value('rivulet_webhook_deliveries_total', retried) === 1);
    expect(found.value('rivulet_webhook_pending')).toBe(1);
    const oldest = found.value('rivulet_webhook_oldest_seconds');
    expect(oldest).toBeGreaterThanOrEqual(0);
    expect(oldest).toBeLessThanOrEqual((Date.now() - began) / 1_000);
    await fetch(`${served.url}/runs/${run_id}`, { method: 'DELETE' });
    await scrapeUntil(served.url, (now) => now.value('rivulet_webhook_pending') === 0);
  });

  it('of two servers in one process do not add up, and only a server that is asked to has them', async () => {
    const [one, two, none] = [
      await serveApi([echo], { metrics: true }),
      await serveApi([echo], { metrics: true }),
      await serveApi([echo]),
    ];
    await (await one.post('/runs', ask('echo'))).text();
    await scrapeUntil(one.url, (now) => now.value(...ended('echo', 'completed')) === 1);
    expect((await scrape(two.url)).value('rivulet_runs_total')).toBeUndefined();
    expect((await none.get('/metrics')).status).toBe(404);
  });

  it('are scraped in milliseconds with 150 histograms', async () => {
    const agents = Array.from({ length: 30 }, (_, index) => agent(`a${index}`, () => of('x', 'y')));
    const served = await serveApi(agents, { metrics: true });
    for (const { manifest } of agents) await (await served.post('/runs', ask(manifest.name))).text();
    const found = await scrapeUntil(served.url, (now) => now.labels('rivulet_runs_total', 'agent').length === 30);
    const histograms = found.count('_seconds_count');
    expect(histograms).toBeGreaterThan(150);
    const times: number[] = [];
    for (let round = 0; round < 10; round += 1) {
      const began = processorTime();
      await scrape(served.url);
      times.push(processorTime() - began);
    }
    const middle = times.sort((a, b) => a - b)[5] ?? 0;
    console.log(
      `${histograms} histograms, ${Math.round(found.text.length / 1024)} KiB: scraped and parsed in ${middle.toFixed(1)} ms`,
    );
    expect(middle).toBeLessThan(1_000);
  });
});

/** A run that was started in the background. */
async function served202(served: Served, name: string, text = 'hi'): Promise<{ run_id: string }> {
  const response = await served.post('/runs', ask(name, text, { mode: 'async' }));
  expect(response.status).toBe(202);
  return response.json();
}

async function eventCount(served: Served, run_id: string): Promise<number> {
  const { events } = await (await served.get(`/runs/${run_id}/events`)).json();
  return events.length;
}

/** Resolves when the run awaits a reply. */
async function awaits(served: Served, run_id: string): Promise<void> {
  const stream = await served.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' });
  if (stream.body === null) throw new Error('no body');
  for await (const chunk of stream.body.pipeThrough(new TextDecoderStream()))
    if (chunk.includes('run.awaiting')) return;
}
