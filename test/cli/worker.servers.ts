import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Run } from '../../src/index.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { ask } from '../support/serve.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';

const agent = (name: string, body: string): string =>
  `import { defineAgent } from 'rivulet';\nexport default defineAgent({ name: '${name}', description: 'A ${name}.' }, ${body});\n`;

const { folder, remove } = makeProject({
  'agents/echo.js': agent('echo', '(input) => input'),
  'agents/asking.js': agent('asking', "(_, context) => context.await('Well?')"),
});
afterAll(remove);

function start(...args: string[]): RivuletProcess {
  const rivulet = new RivuletProcess(args, {}, folder);
  onTestFinished(async () => {
    await rivulet.stop('SIGKILL');
  });
  return rivulet;
}

for (const [name, place] of Object.entries({ redis: await redisPlace(), postgres: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`rivulet worker, with a store in ${name}`, () => {
    afterAll(() => place?.remove());

    it('executes what a server that only serves is asked for; a run that awaits takes no slot', async () => {
      const store = place?.url ?? '';
      const server = start('serve', '--no-worker', '--port', '0', '--store', store);
      const url = await server.url();
      const run = async (agent_name: string, more: object = {}): Promise<Run> => {
        const body = JSON.stringify(ask(agent_name, 'hi', more));
        const headers = { 'content-type': 'application/json' };
        return (await fetch(`${url}/runs`, { method: 'POST', headers, body })).json();
      };
      const { run_id } = await run('echo', { mode: 'async' });
      expect((await (await fetch(`${url}/runs/${run_id}`)).json()).status).toBe('created');
      const worker = start('worker', '--store', store, '--limit', 'running=1');
      expect((await run('asking')).status).toBe('awaiting');
      expect((await run('echo')).status).toBe('completed');
      expect((await (await fetch(`${url}/runs/${run_id}`)).json()).status).toBe('completed');
      expect(worker.out).toContain('with asking, echo');
      expect([await worker.stop(), await server.stop()]).toEqual([0, 0]);
    });
  });
}

it.for([[['worker']], [['serve', '--no-worker']]])(
  'rivulet %s refuses a store that is one process’s',
  async ([args]) => {
    const rivulet = start(...(args ?? []), '--store', 'memory:');
    expect(await rivulet.ended()).toBe(2);
    expect(rivulet.err).toContain('needs a store that several processes share, redis:// or postgres://; got memory:');
  },
);
