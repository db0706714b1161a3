import { once } from 'node:events';
import { get } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { reachableUrls } from '../../src/cli/serving/listen.ts';
import { withoutInput } from '../support/details.ts';
import { ask, framesUntil } from '../support/serve.ts';
import { agentFile, createRun, getJson, post, projectFolder, startRivulet } from './server-project.ts';

it('rivulet serve keeps runs, sessions and figures over a restart, and fails runs that a crash interrupted', async () => {
  const folder = projectFolder({
    'agents/a.js': agentFile('a'),
    'agents/hang.js': agentFile('hang', '() => new Promise(() => {})'),
  });
  const first = startRivulet(folder, ['serve', '--port', '0']);
  const before = await first.url();
  const completed = await createRun(before, 'a');
  const interrupted = await createRun(before, 'hang', { mode: 'async' });
  const tail = await fetch(`${before}/runs/${interrupted.run_id}/events`, { headers: { accept: 'text/event-stream' } });
  await framesUntil(tail, ({ event }) => event.type === 'run.in-progress');
  expect(await first.stop('SIGKILL')).toBe('SIGKILL');

  const url = await startRivulet(folder, ['serve', '--port', '0']).url();
  expect(withoutInput(await getJson(`${url}/runs/${completed.run_id}`))).toEqual(completed);
  expect((await getJson(`${url}/sessions/${completed.session_id}`)).history).toHaveLength(2);
  expect((await getJson(`${url}/agents/a`)).status.success_rate).toBe(100);
  expect(await getJson(`${url}/runs/${interrupted.run_id}`)).toMatchObject({
    status: 'failed',
    error: { code: 'server_error', data: { reason: 'run_interrupted' } },
  });
  const { events } = await getJson(`${url}/runs/${interrupted.run_id}/events`);
  expect(events.map(({ type }: { type: string }) => type)).toEqual(['run.created', 'run.in-progress', 'run.failed']);
});

it.each(['json', 'pretty'])('rivulet serve goes on when the reader of its %s log is gone', async (format) => {
  const folder = projectFolder({ 'agents/a.js': agentFile('a') });
  const server = startRivulet(folder, ['serve', '--port', '0', '--store', 'memory:', '--log-format', format]);
  const url = await server.url();
  server.child.stdout?.destroy();
  for (let runs = 0; runs < 3; runs += 1) expect((await createRun(url, 'a')).status).toBe('completed');
  expect(await server.stop()).toBe(0);
});

it('rivulet serve warns at an address that other computers reach, and prints its URLs', async (t) => {
  const folder = projectFolder({ 'agents/a.js': agentFile('a') }, t);
  const args = ['serve', '--host', '0.0.0.0', '--port', '0', '--store', 'memory:', '--no-auth'];
  const rivulet = startRivulet(folder, args, t);
  const url = await rivulet.url();
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:/);
  for (const other of reachableUrls('0.0.0.0', url)) expect(rivulet.out).toContain(other);
  while (!rivulet.err.includes('no authentication')) await once(rivulet.child.stderr ?? rivulet.child, 'data');
});

it('rivulet serve survives an agent that throws where no Observable catches the error', async (t) => {
  const folder = projectFolder(
    {
      'agents/stray.js': agentFile(
        'stray',
        '() => { setTimeout(() => { throw new Error("astray"); }); Promise.reject(new Error("afloat")); return "ok"; }',
      ),
      'agents/well.js': agentFile('well'),
    },
    t,
  );
  const rivulet = startRivulet(folder, ['serve', '--port', '0', '--store', 'memory:'], t);
  const url = await rivulet.url();
  await createRun(url, 'stray');
  while (!rivulet.out.includes('astray') || !rivulet.out.includes('afloat')) await createRun(url, 'well');
  expect((await createRun(url, 'well')).status).toBe('completed');
  expect(rivulet.out).toContain('an agent threw outside of its run');
});

it.each([[[]], [['--watch']]])(
  'rivulet serve %j ends and names the option that changes a port in use',
  async (options) => {
    const taken = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void taken.close());
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const folder = projectFolder({ 'agents/a.js': agentFile('a') });
    const rivulet = startRivulet(folder, ['serve', ...options, '--port', String(port), '--store', 'memory:']);
    expect(await rivulet.ended()).toBe(1);
    expect(rivulet.err).toBe(
      `rivulet: port ${port} of 127.0.0.1 is in use; give another one with --port, or 0 for a free one\n`,
    );
  },
);

it('rivulet serve accepts the configured host names and origins, and applies limits of requests', async (t) => {
  const folder = projectFolder({ 'agents/a.js': agentFile('a') }, t);
  const args = [
    'serve',
    '--port',
    '0',
    '--store',
    'memory:',
    '--host',
    'localhost',
    '--limit',
    'bodyValues=50,maxStreams=1',
  ];
  const env = { RIVULET_ALLOW_HOST: 'node1, node2', RIVULET_ALLOW_ORIGIN: 'https://app.example.com' };
  const url = await startRivulet(folder, args, t, env).url();
  const { port } = new URL(url);
  const statusOf = (headers: Record<string, string>): Promise<number> =>
    new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port, path: '/ping', headers }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      }).on('error', reject);
    });
  expect(await statusOf({ host: 'node2:80' })).toBe(200);
  expect(await statusOf({ host: 'node3:80' })).toBe(421);
  expect(await statusOf({ origin: 'https://app.example.com' })).toBe(200);
  expect(await statusOf({ origin: 'https://other.example.com' })).toBe(403);
  const wide = await post(`${url}/runs`, ask('a', 'hi', { x: Array(60).fill(0) }));
  expect(wide.status).toBe(413);
});
