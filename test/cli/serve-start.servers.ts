import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { scrape } from '../support/scrape.ts';
import { agentFile, createRun, metricsOf, projectFolder, startRivulet } from './server-project.ts';

describe.concurrent('rivulet serve', () => {
  it('hosts TypeScript, JavaScript and folders with an index, and prints agents, URL and a command to try', async (t) => {
    const folder = projectFolder(
      {
        'agents/one.ts': agentFile('one', "(input): string => input.length + ' message'"),
        'agents/two.js': agentFile('two'),
        'agents/three/index.ts': `import { name } from './name.ts';\n${agentFile('three').replace("'three'", 'name')}`,
        'agents/three/name.ts': "export const name: string = 'three';\n",
        'agents/_shared.ts': 'export {};\n',
        'agents/one.test.ts': 'throw new Error("a test is no agent");\n',
        'agents/README.md': '# not an agent\n',
      },
      t,
    );
    const rivulet = startRivulet(folder, ['serve', '--port', '0'], t);
    const url = await rivulet.url();
    expect(rivulet.out).toMatch(/with 3 agents, store sqlite:\.\/data\/rivulet\.db/);
    expect(rivulet.out).toMatch(/one +A one\.\n +three +A three\.\n +two +A two\./);
    expect(rivulet.out).toContain(`curl -N ${url}/runs`);
    expect((await createRun(url, 'one')).output[0]?.parts[0]?.content).toBe('1 message');
    expect(await rivulet.stop()).toBe(0);
    expect(rivulet.err).toBe('');
  });

  it.for([['serve'], ['serve', '--log-format', 'json']])(
    'serves the agents that load, and names the file of each that does not: %s',
    async (args, t) => {
      const files = { 'agents/bad.ts': 'nope;', 'agents/none.js': 'export default 5;' };
      const folder = projectFolder({ ...files, 'agents/good.ts': agentFile('good', "() => 'fine'") }, t);
      const rivulet = startRivulet(folder, [...args, '--port', '0', '--metrics-port', '0'], t);
      const url = await rivulet.url();
      const metrics = await metricsOf(rivulet);
      expect((await scrape(metrics)).value('rivulet_agent_files_broken')).toBe(2);
      expect(await (await fetch(`${url}/ready`)).json()).toEqual({ status: 'ready' });
      expect((await createRun(url, 'good')).output[0]?.parts[0]?.content).toBe('fine');
      expect(rivulet.err).toMatch(/agents\/bad\.ts: does not load: nope is not defined .*; the file is skipped/);
      expect(rivulet.err).toMatch(/agents\/none\.js: its default export is not an agent; .*; the file is skipped/);
      expect(await rivulet.stop()).toBe(0);
    },
  );

  it('does not start where no agent loads, and names each file', async (t) => {
    const folder = projectFolder({ 'agents/a.js': 'nope;', 'agents/b.js': 'neither;' }, t);
    const rivulet = startRivulet(folder, ['serve', '--port', '0'], t);
    expect(await rivulet.ended()).toBe(1);
    expect(rivulet.err).toMatch(/^rivulet: agents\/a\.js: does not load: .*\nagents\/b\.js: does not load: .*\n$/);
  });

  it('stops as it should where it is told to in the moment in which it listens', async (t) => {
    const signal = `import { Server } from 'node:net';
const { listen } = Server.prototype;
Server.prototype.listen = function (...options) {
  this.once('listening', () => process.kill(process.pid, 'SIGTERM'));
  return listen.apply(this, options);
};
`;
    const folder = projectFolder({ 'agents/stops.js': signal + agentFile('stops') }, t);
    const rivulet = startRivulet(folder, ['serve', '--port', '0'], t);
    expect(await rivulet.ended()).toBe(0);
  });

  it('prints at Ctrl-C how many runs it waits for, and ends at once at the second', async (t) => {
    const folder = projectFolder({ 'agents/hang.js': agentFile('hang', '() => new Promise(() => {})') }, t);
    const args = ['serve', '--port', '0', '--store', 'memory:', '--limit', 'shutdownGrace=600000'];
    const rivulet = startRivulet(folder, args, t);
    const url = await rivulet.url();
    await createRun(url, 'hang', { mode: 'async' });
    await createRun(url, 'hang', { mode: 'async' });
    rivulet.child.kill('SIGINT');
    const note = 'Waiting for 2 runs to end, at most 10 min 0 s; press Ctrl-C again to end at once.';
    while (!rivulet.err.includes(note)) await once(rivulet.child.stderr ?? rivulet.child, 'data');
    expect(await rivulet.stop('SIGINT')).toBe(130);
  });

  it('reads options from the environment; an option on the command line takes precedence', async (t) => {
    const folder = projectFolder({ 'mine/a.js': agentFile('a'), 'yours/b.js': agentFile('b') }, t);
    const env = { PORT: '1', HOST: '127.0.0.1', RIVULET_STORE: 'memory:', PUBLIC_URL: 'https://agents.example.com' };
    const rivulet = startRivulet(folder, ['serve', 'mine', 'yours', '--port', '0'], t, env);
    const url = await rivulet.url();
    expect(rivulet.out).toContain('with 2 agents, store memory:');
    const { session_id } = await createRun(url, 'a');
    const { history } = await (await fetch(`${url}/sessions/${session_id}`)).json();
    expect(history[0]).toMatch(/^https:\/\/agents\.example\.com\/resources\//);
  });

  it('accepts the former name of a limit, with a warning', async (t) => {
    const rivulet = startRivulet(projectFolder({}, t), ['serve', '--limit', 'stopTime=many'], t);
    expect(await rivulet.ended()).toBe(2);
    expect(rivulet.err).toContain('the limit stopTime is now called shutdownGrace');
    expect(rivulet.err).toContain('--limit shutdownGrace: expected integer, in milliseconds; got "many"');
  });
});
