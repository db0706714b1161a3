import { lastValueFrom, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createRuntime, type ServerOptions } from '../../src/index.ts';
import { agent, echo, never } from '../support/agents.ts';
import { Lines } from '../support/lines.ts';
import { stoppedUrl } from '../support/ports.ts';
import { ask, type Served, serve } from '../support/serve.ts';

const [debug, info, warn] = [20, 30, 40];

async function logged(
  agents: Parameters<typeof serve>[0],
  options: Partial<ServerOptions> = {},
  level = 'info',
): Promise<{ served: Served; lines: Lines }> {
  const lines = new Lines();
  const logger = { level, stream: lines.stream };
  return { served: await serve(agents, { docs: false, playground: false, logger, ...options }), lines };
}

const secret = 'hunter2';
const failing = agent('failing', () =>
  throwError(() => new TypeError(`GET https://ann:${secret}@example.com/a?key=${secret}`)),
);

describe('the log', () => {
  it('has one line for a request, with the id that the response has, and one for its run', async () => {
    const { served, lines } = await logged([echo]);
    const response = await served.post('/runs?token=hunter2', ask('echo', 'a secret text'));
    const run = await response.json();
    const request = await lines.request('/runs');
    expect(request).toMatchObject({
      level: info,
      method: 'POST',
      status: 200,
      run_id: run.run_id,
      seconds: expect.any(Number),
      ip: '127.0.0.1',
      request_id: response.headers.get('x-request-id'),
    });
    expect(request.request_id).toMatch(/^[\da-f]{8}-[\da-f]{4}-7/);
    expect(await lines.find(({ msg }) => msg === 'run completed')).toMatchObject({
      level: info,
      agent: 'echo',
      run_id: run.run_id,
      session_id: run.session_id,
      status: 'completed',
      parts: 1,
      tokens: 1,
      seconds: expect.any(Number),
      first_part_seconds: expect.any(Number),
    });
    expect(lines.all('request')).toHaveLength(1);
    expect(lines.text).not.toContain(secret);
    expect(lines.text).not.toContain('a secret text');
    expect(lines.text).not.toContain('trace_id');
  });

  it('has the stack of what an agent threw, and its client does not', async () => {
    const { served, lines } = await logged([failing]);
    const run = await (await served.post('/runs', ask('failing'))).json();
    const line = await lines.find(({ msg }) => msg === 'run failed');
    expect(line).toMatchObject({ level: warn, status: 'failed', reason: 'server_error', run_id: run.run_id });
    expect(line.err).toMatchObject({
      message: 'TypeError: GET https://example.com/a',
      stack: expect.stringContaining('request-log.test.ts:'),
    });
    expect(lines.text).not.toContain(secret);
    expect(JSON.stringify(run)).not.toContain('request-log.test.ts');
  });

  it('has the causes of what an agent threw in one line, and its client does not', async () => {
    const url = await stoppedUrl();
    const { served, lines } = await logged([agent('fetching', () => fetch(url).then(({ status }) => String(status)))]);
    const run = await (await served.post('/runs', ask('fetching'))).json();
    const message = /^TypeError: fetch failed; caused by Error: connect ECONNREFUSED 127\.0\.0\.1:\d+$/;
    const line = await lines.find(({ msg }) => msg === 'run failed');
    expect(line.err).toMatchObject({ message: expect.stringMatching(message) });
    expect(run.error).toEqual({ code: 'server_error', message: 'fetch failed' });
  });

  it('has the line of a cancelled run, with its reason where it has one', async () => {
    const { served, lines } = await logged([never]);
    const first = await (await served.post('/runs', ask('never', '', { mode: 'async' }))).json();
    await served.post(`/runs/${first.run_id}/cancel`);
    expect(await lines.find(({ run_id, status }) => run_id === first.run_id && status === 'cancelled')).toMatchObject({
      level: info,
      msg: 'run cancelled',
    });
    const strict = await logged([never], { limits: { idleTimeout: 50, sweepInterval: 10 } });
    await strict.served.post('/runs', ask('never', '', { mode: 'async' }));
    expect(await strict.lines.find(({ msg }) => msg === 'run failed')).toMatchObject({
      level: warn,
      reason: 'idle_timeout',
    });
  });

  it('has one line for a stream whose client has left', async () => {
    const { served, lines } = await logged([never]);
    const { run_id } = await (await served.post('/runs', ask('never', '', { mode: 'async' }))).json();
    const leave = new AbortController();
    const path = `/runs/${run_id}/events`;
    const stream = await fetch(served.url + path, { headers: { accept: 'text/event-stream' }, signal: leave.signal });
    leave.abort();
    await stream.text().catch(() => undefined);
    expect(await lines.request(path)).toMatchObject({ run_id, stream: 'events', status: 200, complete: false });
    await (await served.get('/agents')).text();
    await lines.request('/agents');
    expect(lines.all('request').filter((line) => line.path === path)).toHaveLength(1);
  });

  it('has why a request was refused, and health checks at debug only', async () => {
    const { served, lines } = await logged([echo], { metrics: true }, 'debug');
    for (const path of ['/health', '/ready', '/metrics', '/nothing']) await (await served.get(path)).text();
    expect(await lines.request('/nothing')).toMatchObject({ level: info, status: 404, reason: 'route_unknown' });
    for (const path of ['/health', '/ready', '/metrics']) expect((await lines.request(path)).level).toBe(debug);
  });

  it('has none of the fields that may hold secrets, in objects that an app logs', async () => {
    const { served, lines } = await logged([echo]);
    const error = Object.assign(new Error('no'), { config: { headers: { authorization: secret } } });
    served.app.log.info({ token: secret, headers: { cookie: secret }, err: error }, 'mine');
    const line = await lines.find(({ msg }) => msg === 'mine');
    expect(line).toMatchObject({ token: '[redacted]', headers: '[redacted]', err: { message: 'no', type: 'Error' } });
    expect(lines.text).not.toContain(secret);
  });

  it('of a runtime without a server has a line for each run', async () => {
    const ended: [object, string][] = [];
    const take = (fields: object, message: string): void => void ended.push([fields, message]);
    const silent = { debug() {}, info() {}, warn() {}, error() {} };
    const log = { child: () => silent, info: take, warn: take, error: take };
    await using runtime = await createRuntime({ agents: [echo, failing], log });
    for (const name of ['echo', 'failing']) await lastValueFrom(runtime.run(name, 'hi'));
    expect(ended.map(([, message]) => message)).toEqual(['run completed', 'run failed']);
  });
});
