import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { makeProject } from '../support/project.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { agentFile, createRun, getJson, startRivulet } from './server-project.ts';

const { folder, remove } = makeProject({
  'agents/echo.js': agentFile('echo'),
  'agents/asking.js': agentFile('asking', "(_, context) => context.await('Well?')"),
  'agents/seeing.js': agentFile(
    'seeing',
    "() => process.env.RIVULET_STORE + ', ' + process.env.RIVULET_WEBHOOK_SECRET",
  ),
});
afterAll(remove);

for (const [name, place] of Object.entries({ redis: await redisPlace(), postgres: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`rivulet worker, with a store in ${name}`, () => {
    afterAll(() => place?.remove());

    it('executes the runs of a server with --no-worker; a run that awaits takes no slot', async () => {
      const store = place?.url ?? '';
      const server = startRivulet(folder, ['serve', '--no-worker', '--port', '0', '--store', store]);
      const url = await server.url();
      const { run_id } = await createRun(url, 'echo', { mode: 'async' });
      expect((await getJson(`${url}/runs/${run_id}`)).status).toBe('created');
      const secrets = { RIVULET_STORE: store, RIVULET_WEBHOOK_SECRET: 'x'.repeat(32) };
      const worker = startRivulet(folder, ['worker', '--limit', 'running=1'], { onTestFinished }, secrets);
      expect((await createRun(url, 'asking')).status).toBe('awaiting');
      expect((await createRun(url, 'echo')).status).toBe('completed');
      expect((await getJson(`${url}/runs/${run_id}`)).status).toBe('completed');
      expect((await createRun(url, 'seeing')).output[0]?.parts[0]?.content).toBe('undefined, undefined');
      expect(worker.out).toContain('with asking, echo, seeing');
      expect([await worker.stop(), await server.stop()]).toEqual([0, 0]);
    });
  });
}

it('rivulet worker asks for the store of the servers', async () => {
  const rivulet = startRivulet(folder, ['worker']);
  expect(await rivulet.ended()).toBe(2);
  expect(rivulet.err).toContain(
    'A worker needs a store that several processes share, redis://HOST, redis+cluster://HOST or postgres://HOST/DATABASE',
  );
});

it.for([[['worker']], [['serve', '--no-worker']]])(
  'rivulet %s refuses a store that processes cannot share',
  async ([args]) => {
    const rivulet = startRivulet(folder, [...(args ?? []), '--store', 'memory:']);
    expect(await rivulet.ended()).toBe(2);
    expect(rivulet.err).toContain(
      'needs a store that several processes share, redis://HOST, redis+cluster://HOST or postgres://HOST/DATABASE; got memory:',
    );
  },
);
