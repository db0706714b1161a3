import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Run } from '../../src/index.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { ask } from '../support/serve.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';

const { folder, remove } = makeProject({
  'agents/echo.js':
    "import { defineAgent } from 'rivulet';\nexport default defineAgent({ name: 'echo', description: 'Echoes.' }, (input) => input);\n",
});
afterAll(remove);

function start(store: string): RivuletProcess {
  const rivulet = new RivuletProcess(['serve', '--port', '0', '--store', store], {}, folder);
  onTestFinished(async () => {
    await rivulet.stop('SIGKILL');
  });
  return rivulet;
}

for (const [name, place] of Object.entries({ redis: await redisPlace(), postgres: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`rivulet serve, with a store in ${name}`, { timeout: 120_000 }, () => {
    afterAll(() => place?.remove());
    const url = place?.url ?? '';

    it('comes up on an empty place though another does so too, keeps runs, and ends when it is told to', async () => {
      const both = [start(url), start(url)];
      const [one = '', other = ''] = await Promise.all(both.map((rivulet) => rivulet.url()));
      const body = JSON.stringify(ask('echo', 'Hello'));
      const headers = { 'content-type': 'application/json' };
      const run: Run = await (await fetch(`${one}/runs`, { method: 'POST', headers, body })).json();
      expect(run.status).toBe('completed');
      expect(await (await fetch(`${other}/runs/${run.run_id}`)).json()).toEqual(run);
      expect(await Promise.all(both.map((rivulet) => rivulet.stop()))).toEqual([0, 0]);
      const third = await start(url).url();
      expect(await (await fetch(`${third}/runs/${run.run_id}`)).json()).toEqual(run);
      expect((await (await fetch(`${third}/sessions/${run.session_id}`)).json()).history).toHaveLength(2);
    });
  });
}
