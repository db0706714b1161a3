import { expect, it } from 'vitest';
import { withoutInput } from '../support/details.ts';
import { framesUntil } from '../support/serve.ts';
import { agentFile, createRun, getJson, projectFolder, startRivulet } from './server-project.ts';

it('rivulet serve keeps runs, sessions and figures over a restart, and fails runs that a crash interrupted', {
  timeout: 120_000,
}, async () => {
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
