import { expect, it } from 'vitest';
import type { Run } from '../../src/index.ts';
import { textOf } from '../support/run-output.ts';
import { agentFile, createRun, getJson, post, projectFolder, startRivulet } from './server-project.ts';

it('rivulet serve drains and exits with 1 after more than ten errors outside of runs within a minute', async (t) => {
  const body =
    '() => { for (let n = 0; n < 11; n += 1) setTimeout(() => { throw new Error("astray"); }); return "ok"; }';
  const folder = projectFolder({ 'agents/stray.js': agentFile('stray', body) }, t);
  const rivulet = startRivulet(folder, ['serve', '--port', '0', '--store', 'sqlite:./s.db'], t);
  const url = await rivulet.url();
  await post(`${url}/runs`, { agent_name: 'stray', mode: 'async', input: [{ parts: [{ content: 'hi' }] }] });
  expect(await rivulet.ended()).toBe(1);
  expect(rivulet.out).toContain('the server goes on');
  expect(rivulet.out).toContain('the server ends');
  expect(rivulet.out + rivulet.err).toContain('more than ten errors outside of runs within a minute');
  // The run is in the store: the server stopped as after SIGTERM.
  const again = startRivulet(folder, ['serve', '--port', '0', '--store', 'sqlite:./s.db'], t);
  const { runs } = await (await fetch(`${await again.url()}/runs`)).json();
  expect(runs).toMatchObject([{ agent_name: 'stray', status: 'completed' }]);
});

it('rivulet serve goes on after an agent leaves a promise that rejects when its awaiting run is cancelled', async (t) => {
  const body = `async (_, context) => {
    const question = context.await('Shall I?');
    const note = async () => { try { await question; } catch { throw new Error('astray'); } };
    void note();
    const { message } = await question;
    return 'You said ' + message.parts[0].content;
  }, { durable: true }`;
  const folder = projectFolder({ 'agents/stray.js': agentFile('stray', body) }, t);
  const rivulet = startRivulet(folder, ['serve', '--port', '0', '--store', 'sqlite:./s.db'], t);
  const url = await rivulet.url();
  const { run_id } = await createRun(url, 'stray');
  const other = await createRun(url, 'stray');
  const awaiting = { status: 'awaiting' };
  for (const one of [run_id, other.run_id])
    await expect.poll(() => getJson(`${url}/runs/${one}`)).toMatchObject(awaiting);
  expect((await post(`${url}/runs/${run_id}/cancel`, {})).status).toBe(202);
  await expect.poll(() => rivulet.out).toContain('astray');
  await expect.poll(() => rivulet.out).toContain('the server goes on');
  await expect.poll(() => getJson(`${url}/runs/${run_id}`)).toMatchObject({ status: 'cancelled' });
  const await_resume = { type: 'message', message: { parts: [{ content: 'yes' }] } };
  const run: Run = await (await post(`${url}/runs/${other.run_id}`, { mode: 'sync', await_resume })).json();
  expect([run.status, textOf(run)]).toEqual(['completed', 'You said yes']);
});
