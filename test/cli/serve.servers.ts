import { expect, it, type TestContext } from 'vitest';
import type { Run } from '../../src/index.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { ask, framesUntil } from '../support/serve.ts';

function project({ onTestFinished }: TestContext, files: Record<string, string>): string {
  const { folder, remove } = makeProject(files);
  onTestFinished(remove);
  return folder;
}

const agentText = (name: string, body = '(input) => input'): string =>
  `import { defineAgent } from 'rivulet';\nexport default defineAgent({ name: '${name}', description: 'A ${name}.' }, ${body});\n`;

function start(
  { onTestFinished }: TestContext,
  folder: string,
  args: string[] = [],
  env: Record<string, string> = {},
): RivuletProcess {
  const rivulet = new RivuletProcess(['serve', ...args], env, folder);
  onTestFinished(async () => {
    await rivulet.stop('SIGKILL');
  });
  return rivulet;
}

const run = async (url: string, agent: string, more = {}): Promise<Run> =>
  (
    await fetch(`${url}/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(ask(agent, 'hi', more)),
    })
  ).json();

it('rivulet serve keeps runs, sessions and figures over a restart, and fails what a crash cut short', {
  timeout: 120_000,
}, async (t) => {
  const folder = project(t, {
    'agents/a.js': agentText('a'),
    'agents/hang.js': agentText('hang', '() => new Promise(() => {})'),
  });
  const first = start(t, folder, ['--port', '0']);
  const before = await first.url();
  const done = await run(before, 'a');
  const hung = await run(before, 'hang', { mode: 'async' });
  const tail = await fetch(`${before}/runs/${hung.run_id}/events`, { headers: { accept: 'text/event-stream' } });
  await framesUntil(tail, ({ event }) => event.type === 'run.in-progress');
  expect(await first.stop('SIGKILL')).toBe('SIGKILL');

  const second = start(t, folder, ['--port', '0']);
  const url = await second.url();
  const get = async (path: string) => (await fetch(`${url}${path}`)).json();
  expect(await get(`/runs/${done.run_id}`)).toEqual(done);
  expect((await get(`/sessions/${done.session_id}`)).history).toHaveLength(2);
  expect((await get('/agents/a')).status.success_rate).toBe(100);
  expect(await get(`/runs/${hung.run_id}`)).toMatchObject({
    status: 'failed',
    error: { code: 'server_error', data: { reason: 'run_interrupted' } },
  });
  const { events } = await get(`/runs/${hung.run_id}/events`);
  expect(events.map(({ type }: { type: string }) => type)).toEqual(['run.created', 'run.in-progress', 'run.failed']);
});
