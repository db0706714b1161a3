import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Run } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import type { RivuletProcess } from '../support/process.ts';
import { createRun, getJson, projectFolder, startRivulet } from './server-project.ts';

const head = `
import { existsSync, watch } from 'node:fs';
import { defineAgent } from 'rivulet';
import { concat, defer, ignoreElements, Observable, of } from 'rxjs';

/** Completes when the test has created a file of that name. */
const gate = (name) => new Observable((subscriber) => {
  const look = () => existsSync(name) && subscriber.complete();
  const watching = watch('.', look);
  look();
  return () => watching.close();
});
const agent = (name, work) =>
  defineAgent({ name, description: 'A ' + name + '.' }, (_, context) => context.step('work', work), { durable: true });
`;

it('a run that kills its server fails alone, and the slow runs beside it complete', async () => {
  const folder = projectFolder({
    'agents/killer.js': `${head}
export default agent('killer', () => concat(gate('ready'), defer(() => process.kill(process.pid, 'SIGKILL'))));`,
    'agents/slow.js': `${head}
export default agent('slow', () => concat(gate('go'), of('done')));`,
  });
  // A suspect waits for some checks, one each `sweepInterval`.
  const start = () => startRivulet(folder, ['serve', '--port', '0', '--limit', 'sweepInterval=50']);
  let server = start();
  let url = await server.url();
  const create = async (agent: string): Promise<string> => (await createRun(url, agent, { mode: 'async' })).run_id;
  const slow = [await create('slow'), await create('slow')];
  const killer = await create('killer');
  for (let n = 0; n < 3; n += 1) slow.push(await create('slow'));
  const runOf = (run_id: string): Promise<Run> => getJson(`${url}/runs/${run_id}`);
  await eventually(async () => expect((await runOf(killer)).status).toBe('in-progress'));
  writeFileSync(join(folder, 'ready'), '');
  expect(await server.ended()).toBe('SIGKILL');

  /** Whether the server goes on when the killer has failed. */
  const survives = async (one: RivuletProcess): Promise<boolean> => {
    const dies = one.ended().then(() => undefined);
    const found = await Promise.race([dies, one.url().catch(() => undefined)]);
    if (found === undefined) return false;
    url = found;
    for (;;) {
      const run = await Promise.race([dies, runOf(killer).catch(() => undefined)]);
      if (run === undefined) return false;
      if (run.status === 'failed') return true;
    }
  };
  let deaths = 1;
  for (; ; deaths += 1) {
    server = start();
    if (await survives(server)) break;
  }
  expect((await runOf(killer)).error?.data?.reason).toBe('recovery_exhausted');
  // The first execution, and three attempts.
  expect(deaths).toBe(4);
  writeFileSync(join(folder, 'go'), '');
  for (const run_id of slow) await eventually(async () => expect((await runOf(run_id)).status).toBe('completed'));
  expect(await server.stop()).toBe(0);
});
