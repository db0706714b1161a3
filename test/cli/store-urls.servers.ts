import { afterAll, describe, expect, it } from 'vitest';
import { withoutInput } from '../support/details.ts';
import type { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { agentFile, createRun, getJson, startRivulet } from './server-project.ts';

const { folder, remove } = makeProject({ 'agents/echo.js': agentFile('echo') });
afterAll(remove);

const serve = (store: string): RivuletProcess => startRivulet(folder, ['serve', '--port', '0', '--store', store]);

for (const [name, place] of Object.entries({ redis: await redisPlace(), postgres: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`rivulet serve, with a store in ${name}`, () => {
    afterAll(() => place?.remove());
    const store = place?.url ?? '';

    it('starts on an empty store at the same time as another node, keeps runs, and stops on SIGTERM', async () => {
      const nodes = [serve(store), serve(store)];
      const [first = '', second = ''] = await Promise.all(nodes.map((node) => node.url()));
      const run = await createRun(first, 'echo');
      expect(run.status).toBe('completed');
      expect(withoutInput(await getJson(`${second}/runs/${run.run_id}`))).toEqual(run);
      expect(await Promise.all(nodes.map((node) => node.stop()))).toEqual([0, 0]);
      const third = await serve(store).url();
      expect(withoutInput(await getJson(`${third}/runs/${run.run_id}`))).toEqual(run);
      expect((await getJson(`${third}/sessions/${run.session_id}`)).history).toHaveLength(2);
    });

    it('exits with the reason, without the password, if the store cannot be opened', async () => {
      const wrong = new URL(store);
      wrong.hostname = '127.0.0.1';
      wrong.port = '1';
      wrong.password = 'secret';
      const rivulet = serve(wrong.href);
      expect(await rivulet.ended()).toBe(1);
      expect(rivulet.err).toMatch(/^rivulet: the store \S+ cannot be opened: connect ECONNREFUSED \S+\n$/);
      expect(rivulet.err).not.toContain('secret');
    });
  });
}
