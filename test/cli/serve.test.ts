import { once } from 'node:events';
import { get } from 'node:http';
import { describe, expect, it } from 'vitest';
import { examplesHelp } from '../../src/cli/examples.ts';
import { reachableUrls } from '../../src/cli/greeting.ts';
import { RivuletProcess } from '../support/process.ts';
import { ask } from '../support/serve.ts';
import { agentFile, createRun, post, projectFolder, startRivulet } from './server-project.ts';

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

  it.for([[], ['--watch']])('ends and names the option that changes a port in use, %j', async (options, t) => {
    const folder = projectFolder({ 'agents/a.js': agentFile('a') }, t);
    const taken = new URL(await startRivulet(folder, ['serve', '--port', '0', '--store', 'memory:'], t).url()).port;
    const rivulet = startRivulet(folder, ['serve', ...options, '--port', taken, '--store', 'memory:'], t);
    expect(await rivulet.ended()).toBe(1);
    expect(rivulet.err).toBe(
      `rivulet: port ${taken} of 127.0.0.1 is in use; give another one with --port, or 0 for a free one\n`,
    );
  });

  it('warns at an address that other computers reach, and prints its URLs', async (t) => {
    const folder = projectFolder({ 'agents/a.js': agentFile('a') }, t);
    const args = ['serve', '--host', '0.0.0.0', '--port', '0', '--store', 'memory:', '--no-auth'];
    const rivulet = startRivulet(folder, args, t);
    const url = await rivulet.url();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:/);
    for (const other of reachableUrls('0.0.0.0', url)) expect(rivulet.out).toContain(other);
    while (!rivulet.err.includes('no authentication')) await once(rivulet.child.stderr ?? rivulet.child, 'data');
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

  it('exits with one line that names an unknown kind of store', async (t) => {
    const rivulet = startRivulet(
      projectFolder({ 'agents/a.js': agentFile('a') }, t),
      ['serve', '--store', 'mongo:'],
      t,
    );
    expect(await rivulet.ended()).toBe(1);
    expect(rivulet.err).toMatch(/^rivulet: there is no store "mongo:"; use memory:, sqlite:PATH, redis:.*\n$/);
  });

  it.for<[string, string[], RegExp]>([
    ['an invalid port', ['--port', 'many'], /--port: expected integer; got "many"/],
    ['an invalid public URL', ['--public-url', 'example.com'], /--public-url: expected an http\(s\) URL/],
    [
      'an invalid network',
      ['--allow-network', '10.0.0.0/8,nonsense'],
      /expected an address or a range .* got "nonsense"/,
    ],
    ['an unknown limit', ['--limit', 'sweeps=1'], /there is no limit "sweeps"; the limits are events, .*maxStreams/],
    [
      'a time that is too short',
      ['--limit', 'sweepInterval=0'],
      /--limit sweepInterval: expected integer to be greater/,
    ],
    [
      'a time that is too long for a timer',
      ['--limit', 'keepAliveTimeout=9999999999'],
      /--limit keepAliveTimeout: expected integer to be less/,
    ],
  ])('refuses %s', async ([, args, says], t) => {
    const rivulet = startRivulet(projectFolder({}, t), ['serve', ...args], t);
    expect(await rivulet.ended()).toBe(2);
    expect(rivulet.err).toMatch(says);
  });

  it('accepts the former name of a limit, with a warning', async (t) => {
    const rivulet = startRivulet(projectFolder({}, t), ['serve', '--limit', 'stopTime=many'], t);
    expect(await rivulet.ended()).toBe(2);
    expect(rivulet.err).toContain('the limit stopTime is now called shutdownGrace');
    expect(rivulet.err).toContain('--limit shutdownGrace: expected integer; got "many"');
  });

  it('accepts the configured host names and origins, and applies limits of requests', async (t) => {
    const folder = projectFolder({ 'agents/a.js': agentFile('a') }, t);
    const args = [
      'serve',
      '--port',
      '0',
      '--store',
      'memory:',
      '--host',
      'localhost',
      '--limit',
      'bodyValues=50,maxStreams=1',
    ];
    const env = { RIVULET_ALLOW_HOST: 'node1, node2', RIVULET_ALLOW_ORIGIN: 'https://app.example.com' };
    const url = await startRivulet(folder, args, t, env).url();
    const { port } = new URL(url);
    const statusOf = (headers: Record<string, string>): Promise<number> =>
      new Promise((resolve, reject) => {
        get({ host: '127.0.0.1', port, path: '/ping', headers }, (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        }).on('error', reject);
      });
    expect(await statusOf({ host: 'node2:80' })).toBe(200);
    expect(await statusOf({ host: 'node3:80' })).toBe(421);
    expect(await statusOf({ origin: 'https://app.example.com' })).toBe(200);
    expect(await statusOf({ origin: 'https://other.example.com' })).toBe(403);
    const wide = await post(`${url}/runs`, ask('a', 'hi', { x: Array(60).fill(0) }));
    expect(wide.status).toBe(413);
  });

  it('survives an agent that throws where no Observable catches the error', async (t) => {
    const folder = projectFolder(
      {
        'agents/stray.js': agentFile(
          'stray',
          '() => { setTimeout(() => { throw new Error("astray"); }); Promise.reject(new Error("afloat")); return "ok"; }',
        ),
        'agents/well.js': agentFile('well'),
      },
      t,
    );
    const rivulet = startRivulet(folder, ['serve', '--port', '0', '--store', 'memory:'], t);
    const url = await rivulet.url();
    await createRun(url, 'stray');
    while (!rivulet.out.includes('astray') || !rivulet.out.includes('afloat')) await createRun(url, 'well');
    expect((await createRun(url, 'well')).status).toBe('completed');
    expect(rivulet.out).toContain('an agent threw outside of its run');
  });
});

describe('rivulet', () => {
  it('prints help', async () => {
    const help = new RivuletProcess(['--help']);
    expect(await help.ended()).toBe(0);
    const commands = [...help.out.matchAll(/^ {2}([a-z]+) .*(?:<|\[options\])/gm)].map(([, name = '']) => name);
    expect(commands).toEqual(expect.arrayContaining(['serve', 'run', 'chat', 'runs']));
    for (const name of commands) expect(examplesHelp(name), name).toContain(`$ `);
    const serve = new RivuletProcess(['serve', '--help']);
    expect(await serve.ended()).toBe(0);
    for (const word of ['--host', '--port', '--store', '--public-url', 'RIVULET_STORE', 'sqlite:./data/rivulet.db']) {
      expect(serve.out).toContain(word);
    }
    expect(serve.out).toMatch(/\nExamples:\n {2}\$ rivulet serve +serves agents\/ at/);
  });
});
