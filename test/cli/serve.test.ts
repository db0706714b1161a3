import { get } from 'node:http';
import { describe, expect, it, type TestContext } from 'vitest';
import type { Run } from '../../src/index.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { ask } from '../support/serve.ts';

function project({ onTestFinished }: TestContext, files: Record<string, string>): string {
  const { folder, remove } = makeProject(files);
  onTestFinished(remove);
  return folder;
}

const agentText = (name: string, body = '(input) => input'): string =>
  `import { defineAgent } from 'rivulet';\nexport default defineAgent({ name: '${name}', description: 'A ${name}.' }, ${body});\n`;

function start(
  { onTestFinished }: TestContext,
  folder: string,
  args: string[] = [],
  env: Record<string, string> = {},
): RivuletProcess {
  const rivulet = new RivuletProcess(['serve', ...args], env, folder);
  onTestFinished(async () => {
    await rivulet.stop('SIGKILL');
  });
  return rivulet;
}

const run = async (url: string, agent: string, more = {}): Promise<Run> =>
  (
    await fetch(`${url}/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(ask(agent, 'hi', more)),
    })
  ).json();

describe.concurrent('rivulet serve', { timeout: 60_000 }, () => {
  it('hosts TypeScript, JavaScript and folders with an index, and says whom, where and what to try', async (t) => {
    const folder = project(t, {
      'agents/one.ts': agentText('one', "(input): string => input.length + ' message'"),
      'agents/two.js': agentText('two'),
      'agents/three/index.ts': `import { name } from './name.ts';\n${agentText('three').replace("'three'", 'name')}`,
      'agents/three/name.ts': "export const name: string = 'three';\n",
      'agents/_shared.ts': 'export {};\n',
      'agents/one.test.ts': 'throw new Error("a test is no agent");\n',
      'agents/README.md': '# not an agent\n',
    });
    const rivulet = start(t, folder, ['--port', '0']);
    const url = await rivulet.url();
    expect(rivulet.out).toMatch(/with 3 agents, kept in sqlite:\.\/data\/rivulet\.db/);
    expect(rivulet.out).toMatch(/one +A one\.\n +three +A three\.\n +two +A two\./);
    expect(rivulet.out).toContain(`curl -N ${url}/runs`);
    expect((await run(url, 'one')).output[0]?.parts[0]?.content).toBe('1 message');
    expect(await rivulet.stop()).toBe(0);
    expect(rivulet.err).toBe('');
  });

  it('takes its options from the environment, and an option wins over it', async (t) => {
    const folder = project(t, { 'mine/a.js': agentText('a'), 'yours/b.js': agentText('b') });
    const env = { PORT: '1', HOST: '127.0.0.1', RIVULET_STORE: 'memory:', PUBLIC_URL: 'https://agents.example.com' };
    const rivulet = start(t, folder, ['mine', 'yours', '--port', '0'], env);
    const url = await rivulet.url();
    expect(rivulet.out).toContain('with 2 agents, kept in memory:');
    const { session_id } = await run(url, 'a');
    const { history } = await (await fetch(`${url}/sessions/${session_id}`)).json();
    expect(history[0]).toMatch(/^https:\/\/agents\.example\.com\/resources\//);
  });

  it('stops with one line that says what is wrong: a store of no known kind', async (t) => {
    const rivulet = start(t, project(t, { 'agents/a.js': agentText('a') }), ['--store', 'mongo:']);
    expect(await rivulet.ended()).toBe(1);
    expect(rivulet.err).toMatch(/^rivulet: there is no store "mongo:"; use memory:, sqlite:PATH, redis:.*\n$/);
  });

  it.for<[string, string[], RegExp]>([
    ['a port that is none', ['--port', 'many'], /option '--port <port>' argument 'many' is invalid/],
    ['a public URL that is none', ['--public-url', 'example.com'], /'example\.com' is invalid/],
    [
      'a network that is none',
      ['--allow-network', '10.0.0.0/8,nonsense'],
      /expected an address or a range .* got "nonsense"/,
    ],
    [
      'a limit that there is not',
      ['--limit', 'sweeps=1'],
      /There is no limit "sweeps"; there are events, .*maxStreams/,
    ],
    [
      'a time that means nothing',
      ['--limit', 'sweepInterval=0'],
      /limits\.sweepInterval: expected integer to be greater/,
    ],
    [
      'a time too long for a timer',
      ['--limit', 'keepAliveTimeout=9999999999'],
      /options\.keepAliveTimeout: expected integer to be less/,
    ],
  ])('takes no option that is wrong: %s', async ([, args, says], t) => {
    const rivulet = start(t, project(t, {}), args);
    expect(await rivulet.ended()).toBe(2);
    expect(rivulet.err).toMatch(says);
  });

  it('takes the former name of a limit, with a warning', async (t) => {
    const rivulet = start(t, project(t, {}), ['--limit', 'stopTime=many']);
    expect(await rivulet.ended()).toBe(2);
    expect(rivulet.err).toContain('the limit stopTime is called shutdownGrace now');
    expect(rivulet.err).toContain('shutdownGrace has to be a whole number; got "many"');
  });

  it('answers to the names that it is given, and takes limits of requests', async (t) => {
    const folder = project(t, { 'agents/a.js': agentText('a') });
    const args = ['--port', '0', '--store', 'memory:', '--host', 'localhost', '--limit', 'bodyValues=50,maxStreams=1'];
    const env = { RIVULET_ALLOW_HOST: 'node1, node2', RIVULET_ALLOW_ORIGIN: 'https://app.example.com' };
    const url = await start(t, folder, args, env).url();
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
    const wide = await fetch(`${url}/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(ask('a', 'hi', { x: Array(60).fill(0) })),
    });
    expect(wide.status).toBe(413);
  });

  it('lives on when an agent throws where no Observable catches it', async (t) => {
    const folder = project(t, {
      'agents/stray.js': agentText(
        'stray',
        '() => { setTimeout(() => { throw new Error("astray"); }); Promise.reject(new Error("afloat")); return "ok"; }',
      ),
      'agents/well.js': agentText('well'),
    });
    const rivulet = start(t, folder, ['--port', '0', '--store', 'memory:']);
    const url = await rivulet.url();
    await run(url, 'stray');
    while (!rivulet.out.includes('astray') || !rivulet.out.includes('afloat')) await run(url, 'well');
    expect((await run(url, 'well')).status).toBe('completed');
    expect(rivulet.out).toContain('an agent threw outside of its run');
  });
});

describe('rivulet', { timeout: 60_000 }, () => {
  it('explains itself', async () => {
    const help = new RivuletProcess(['--help']);
    expect(await help.ended()).toBe(0);
    expect(help.out).toContain('serve');
    const serve = new RivuletProcess(['serve', '--help']);
    expect(await serve.ended()).toBe(0);
    for (const word of ['--host', '--port', '--store', '--public-url', 'RIVULET_STORE', 'sqlite:./data/rivulet.db']) {
      expect(serve.out).toContain(word);
    }
  });
});
