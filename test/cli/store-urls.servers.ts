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
  describe.skipIf(place === undefined)(`rivulet serve, with a store in ${name}`, { timeout: 60_000 }, () => {
    afterAll(() => place?.remove());
    const url = place?.url ?? '';

    // network-stores.servers.ts starts two at the same time, and a third one on what they left.
    it('comes up on an empty place, keeps runs, and ends when it is told to', async () => {
      const rivulet = start(url);
      const at = await rivulet.url();
      const body = JSON.stringify(ask('echo', 'Hello'));
      const headers = { 'content-type': 'application/json' };
      const run: Run = await (await fetch(`${at}/runs`, { method: 'POST', headers, body })).json();
      expect(run.status).toBe('completed');
      expect(await (await fetch(`${at}/runs/${run.run_id}`)).json()).toEqual(run);
      expect(await rivulet.stop()).toBe(0);
    });

    it('says why it does not come up', async () => {
      const wrong = new URL(url);
      wrong.hostname = '127.0.0.1';
      wrong.port = '1';
      wrong.password = 'secret';
      const rivulet = start(wrong.href);
      expect(await rivulet.ended()).toBe(1);
      expect(rivulet.err).toMatch(/^rivulet: the store \S+ cannot be opened: connect ECONNREFUSED \S+\n$/);
      expect(rivulet.err).not.toContain('secret');
    });
  });
}
