import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import type { RivuletProcess } from '../support/process.ts';
import { createRun, getJson, projectFolder, startRivulet } from './server-project.ts';

/** A file with an agent, which may hold the event loop while the file `hold` exists. */
const file = (name: string, body: string, options = '{}'): string => `
import { existsSync } from 'node:fs';
import { defineAgent } from 'rivulet';

const pause = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
const hold = () => { while (existsSync('hold')) pause(); };
export default defineAgent({ name: '${name}', description: 'Holds the loop.' }, ${body}, ${options});
`;

const files = {
  'agents/holder.js': file('holder', "() => { hold(); return 'done'; }"),
  'agents/later.js': file(
    'later',
    "async () => { await new Promise((resolve) => setTimeout(resolve, 10)); hold(); return 'done'; }",
  ),
  'agents/durable.js': file(
    'durable',
    "async (_, context) => { hold(); await context.step('for ever', () => new Promise(() => {})); return 'done'; }",
    '{ durable: true }',
  ),
};

const args = ['serve', '--port', '0', '--limit', 'sweepInterval=50'];
const begun = (folder: string): void => writeFileSync(join(folder, 'hold'), '');
const linesOf = ({ err }: RivuletProcess) =>
  err.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
const held = (server: RivuletProcess, count = 1) =>
  eventually(() => {
    const lines = linesOf(server).filter(({ seconds }) => seconds !== undefined);
    expect(lines.length).toBeGreaterThanOrEqual(count);
    return lines;
  });

it.concurrent('names a run that holds the event loop, and ends at the second Ctrl-C meanwhile', async (test) => {
  const folder = projectFolder(files, test);
  begun(folder);
  const server = startRivulet(folder, args, test);
  const url = await server.url();
  const lost = createRun(url, 'holder', { mode: 'async' }).catch(() => undefined);
  const [line] = await held(server);
  expect(line).toMatchObject({ level: 40, agent: 'holder', seconds: 5, pid: server.child.pid });
  expect(line.msg).toMatch(/^agent holder, run \S+, has held the event loop for 5 s\. .*kill -9 \d+/);
  server.child.kill('SIGINT');
  await eventually(() => expect(server.err).toContain('Ctrl-C again ends the process at once'));
  server.child.kill('SIGINT');
  expect(await server.ended()).toBe('SIGINT');
  await lost;
});

it.concurrent('names the agent that was called last where it holds the loop later, and then goes on', async (test) => {
  const folder = projectFolder(files, test);
  begun(folder);
  const server = startRivulet(folder, args, test);
  const url = await server.url();
  const { run_id } = await createRun(url, 'later', { mode: 'async' });
  const [line] = await held(server);
  expect(line.msg).toContain(
    `something has held the event loop for 5 s; the last agent that was called is agent later, run ${run_id}`,
  );
  rmSync(join(folder, 'hold'));
  await eventually(async () => expect((await getJson(`${url}/runs/${run_id}`)).status).toBe('completed'));
  await eventually(() => expect(server.err).toMatch(/the event loop turns again, after it was held for \d+ s/));
  // Its handler of the signal is back: the first one stops the server, and does not end it.
  expect(await server.stop('SIGINT')).toBe(0);
});

it.concurrent('stops after one Ctrl-C while the loop was held, when the loop turns', async (test) => {
  const folder = projectFolder(files, test);
  begun(folder);
  const server = startRivulet(folder, args, test);
  const created = createRun(await server.url(), 'holder', { mode: 'async' }).catch(() => undefined);
  await held(server);
  server.child.kill('SIGINT');
  await eventually(() => expect(server.err).toContain('Ctrl-C again'));
  rmSync(join(folder, 'hold'));
  expect(await server.ended()).toBe(0);
  await created;
});

it.concurrent('says nothing of a process that was stopped for longer', async (test) => {
  const folder = projectFolder(files, test);
  const server = startRivulet(folder, args, test);
  const url = await server.url();
  server.child.kill('SIGSTOP');
  await new Promise((resolve) => setTimeout(resolve, 7_000));
  server.child.kill('SIGCONT');
  await getJson(`${url}/ready`);
  expect(linesOf(server)).toEqual([]);
  expect(await server.stop()).toBe(0);
});

it.concurrent('listens before it re-enters a run whose agent holds the event loop, and names the run', async (test) => {
  const folder = projectFolder(files, test);
  const first = startRivulet(folder, args, test);
  const before = await first.url();
  const { run_id } = await createRun(before, 'durable', { mode: 'async' });
  await eventually(async () => expect((await getJson(`${before}/runs/${run_id}`)).status).toBe('in-progress'));
  await first.stop('SIGKILL');
  begun(folder);
  for (const attempt of ['', ' (attempt 2)']) {
    const server = startRivulet(folder, args, test);
    await server.url();
    const [line] = await held(server);
    expect(line).toMatchObject({ agent: 'durable', run_id });
    if (attempt !== '')
      expect(server.out).toContain(`"run_id":"${run_id}","msg":"is re-entered: agent durable${attempt}"`);
    await server.stop('SIGKILL');
  }
});
