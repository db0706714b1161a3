import { describe, expect, it } from 'vitest';
import { examplesHelp } from '../../src/cli/examples.ts';
import { rivuletHere } from '../support/command.ts';
import { agentFile, projectFolder } from './server-project.ts';

describe('the options of rivulet serve', () => {
  it('exits with one line that names an unknown kind of store', async (t) => {
    const cwd = projectFolder({ 'agents/a.js': agentFile('a') }, t);
    const { code, err } = await rivuletHere(['serve', '--store', 'mongo:'], { cwd });
    expect(code).toBe(2);
    expect(err).toMatch(/^rivulet: --store: there is no store "mongo:"; use memory:, sqlite:PATH, redis:.*\n$/);
  });

  it('says how to make a key file that is missing', async (t) => {
    const cwd = projectFolder({ 'agents/a.js': agentFile('a') }, t);
    const { code, err } = await rivuletHere(['serve', '--keys', 'no.yaml', '--store', 'memory:'], { cwd });
    expect([code, err]).toEqual([
      1,
      'rivulet: no.yaml: there is no such file; make one with: npx rivulet keys new --principal NAME --file no.yaml\n',
    ]);
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
    const { code, err } = await rivuletHere(['serve', ...args], { cwd: projectFolder({}, t) });
    expect(code).toBe(2);
    expect(err).toMatch(says);
  });
});

describe('rivulet', () => {
  it.each<[string[], string]>([
    [['keys', 'list'], "error: unknown command 'list'\nUsage: rivulet keys new\n(see --help)\n"],
    [['run'], "error: missing required argument 'agent'\nUsage: rivulet run [options] <agent> [text]\n(see --help)\n"],
    [
      ['keys', 'new'],
      "error: required option '--principal <name>' not specified\nUsage: rivulet keys new [options]\n(see --help)\n",
    ],
  ])('shows how a command is called where its arguments are wrong: %s', async (args, says) => {
    expect(await rivuletHere(args)).toMatchObject({ code: 2, err: says });
  });

  it('prints help', async () => {
    const help = await rivuletHere(['--help']);
    expect(help.code).toBe(0);
    const commands = [...help.out.matchAll(/^ {2}([a-z]+) .*(?:<|\[options\])/gm)].map(([, name = '']) => name);
    expect(commands).toEqual(expect.arrayContaining(['serve', 'run', 'chat', 'runs']));
    for (const name of commands) expect(examplesHelp(name), name).toContain(`$ `);
    const serve = await rivuletHere(['serve', '--help']);
    expect(serve.code).toBe(0);
    for (const word of ['--host', '--port', '--store', '--public-url', 'RIVULET_STORE', 'sqlite:./data/rivulet.db']) {
      expect(serve.out).toContain(word);
    }
    expect(serve.out).toMatch(/\nExamples:\n {2}\$ rivulet serve +serves agents\/ at/);
  });
});
