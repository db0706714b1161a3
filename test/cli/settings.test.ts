import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, describe, expect, it } from 'vitest';
import { addServing, type Resolved, resolveSettings } from '../../src/cli/settings/resolve-settings.ts';
import { fileSchema, rows } from '../../src/cli/settings/settings.ts';
import { newFolder } from '../support/folder.ts';

const folder = newFolder(afterAll);

function fileOf(text: string, name = 'rivulet.yaml'): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** What the settings are, for a command line, an environment and a file. */
async function resolved(
  args: string[],
  { env = {}, file }: { env?: NodeJS.ProcessEnv; file?: string } = {},
): Promise<Resolved> {
  const command = addServing(new Command('serve'));
  const config = file === undefined ? [] : ['--config', file];
  command.parse([...config, ...args], { from: 'user' });
  return resolveSettings(command, command.args, env);
}

const mistakes = (args: string[], given?: Parameters<typeof resolved>[1]): Promise<string> =>
  resolved(args, given).then(
    () => '',
    (error: Error) => error.message.replaceAll(`${folder}/`, ''),
  );

describe('settings', () => {
  it('come from flags, then variables, then the file, then the defaults', async () => {
    const file = fileOf('port: 1\nhost: file\nstore: "memory:"\nlimits: { events: 1, chars: 2, runTtl: 3 }\n');
    const env = { PORT: '2', HOST: 'variable', RIVULET_LIMITS: 'events=4,chars=5' };
    const { settings, origin } = await resolved(['--port', '3', '--limit', 'events=6'], { env, file });
    expect(settings).toMatchObject({ port: 3, host: 'variable', store: 'memory:', docs: true });
    expect(settings.limits).toMatchObject({ events: 6, chars: 5, runTtl: 3, backlog: 262_144 });
    expect(origin(['port'])).toBe('--port');
    expect(origin(['host'])).toBe('HOST');
    expect(origin(['store'])).toBe(`${file}:3:8`);
    expect(origin(['docs'])).toBe('default');
    expect(origin(['limits', 'chars'])).toBe('RIVULET_LIMITS chars');
    expect(origin(['limits', 'runTtl'])).toBe(`${file}:4:40`);
  });

  it('take lists from repeated flags, and folders from arguments', async () => {
    const file = fileOf('agents: [a, b]\nwatch: true\n');
    expect((await resolved([], { file })).settings).toMatchObject({ agents: ['a', 'b'], watch: true });
    const { settings } = await resolved(['c', '--allow-host', 'x, y', '--allow-host', 'z', '--no-docs'], { file });
    expect(settings).toMatchObject({ agents: ['c'], allowHosts: ['x', 'y', 'z'], docs: false });
  });

  it('report every mistake of a file, with its line and column and a similar name', async () => {
    const file = fileOf('prot: 9000\nport: many\nlog:\n  level: loud\nlimits:\n  runTtl: -4\n  sweepIntervall: 3\n');
    expect((await mistakes([], { file })).split('\n')).toEqual([
      'rivulet.yaml:1:1 prot: there is no such setting. Did you mean port?',
      'rivulet.yaml:2:7 port: expected integer',
      'rivulet.yaml:4:10 log.level: expected one of fatal, error, warn, info, debug, silent',
      'rivulet.yaml:6:11 limits.runTtl: expected integer to be greater or equal to 0',
      'rivulet.yaml:7:3 limits.sweepIntervall: there is no such setting. Did you mean sweepInterval?',
    ]);
  });

  it('report every mistake of flags and variables at once, with the text', async () => {
    const env = { LOG_LEVEL: 'loud', RIVULET_LIMITS: 'events=none' };
    expect((await mistakes(['--port', '70000', '--limit', 'evnts=1'], { env })).split('\n')).toEqual([
      expect.stringContaining('--limit: there is no limit "evnts"; the limits are events, chars'),
      '--port: expected integer to be less or equal to 65535; got "70000"',
      'LOG_LEVEL: expected one of fatal, error, warn, info, debug, silent; got "loud"',
      'RIVULET_LIMITS events: expected integer; got "none"',
    ]);
    expect(await mistakes(['--allow-network', '10.0.0.0/8,x', '--public-url', 'x'])).toMatch(
      /^--allow-network: expected an address or a range .* got "x"\n--public-url: expected an http/,
    );
    expect(await mistakes(['--trust-proxy', 'x'])).toBe(
      '--trust-proxy: expected an address or a range such as 10.0.0.0/8 in trustProxy; got "x"',
    );
  });

  it('name the unit of a time', async () => {
    const file = fileOf('limits:\n  runTtl: 30d\n  events: 30d\n  heartbeat: 1s\n');
    expect((await mistakes(['--limit', 'idleTimeout=5m'], { file })).split('\n')).toEqual([
      '--limit idleTimeout: expected integer, in milliseconds; got "5m"',
      'rivulet.yaml:2:11 limits.runTtl: expected integer, in milliseconds',
      'rivulet.yaml:3:11 limits.events: expected integer',
      'rivulet.yaml:4:14 limits.heartbeat: expected integer, in milliseconds',
    ]);
  });

  it('refuse an empty address', async () => {
    const file = fileOf('host: ""\n');
    expect(await mistakes(['--metrics-host', ''], { file })).toBe(
      '--metrics-host: expected string length greater or equal to 1; got ""\n' +
        'rivulet.yaml:1:7 host: expected string length greater or equal to 1',
    );
  });

  it('report YAML that does not parse, and a value that is no object', async () => {
    expect(await mistakes([], { file: fileOf('a: 1\na: 2\nb: [\n') })).toMatch(
      /^rivulet.yaml:2:1 Map keys must be unique\nrivulet.yaml:4:1 /,
    );
    expect(await mistakes([], { file: fileOf('store: memory:\n') })).toMatch(
      /^rivulet.yaml:1:8 .*; put a value with a colon in quotes, such as "memory:"$/,
    );
    expect(await mistakes([], { file: fileOf('- port\n') })).toBe('rivulet.yaml expected settings, as "port: 9000"');
    expect(await mistakes([], { file: fileOf('limits: 5\n') })).toBe('rivulet.yaml:1:9 limits: expected object');
    expect(await mistakes(['--limit', 'events=5'], { file: fileOf('limits: 5\n') })).toBe(
      'rivulet.yaml:1:9 limits: expected object',
    );
    expect(await mistakes([], { file: fileOf('# nothing\n') })).toBe('');
    expect(await mistakes([], { file: join(folder, 'missing.yaml') })).toContain('missing.yaml: there is no such file');
  });

  it('report a name that is no owner', async () => {
    const file = fileOf('runTtlByOwner:\n  key:alice: 5\n  bob: 5\n');
    expect(await mistakes([], { file })).toBe(
      'rivulet.yaml:3:3 runTtlByOwner.bob: expected an owner, such as key:alice or tenant:acme',
    );
  });

  it('come from JSON, and from the default export of TypeScript', async () => {
    const json = fileOf('{\n\t"port": 5\n}', 'rivulet.json');
    const json2 = await resolved([], { file: json });
    expect([json2.settings.port, json2.origin(['port'])]).toEqual([5, `${json}:2:10`]);
    const code = fileOf('export default { port: 6 satisfies number };\n', 'rivulet.config.mts');
    const fromCode = await resolved([], { file: code });
    expect([fromCode.settings.port, fromCode.origin(['port'])]).toEqual([6, code]);
  });

  it('report a module without a default export, and take an empty one', async () => {
    const named = fileOf('export const auth = {};\nexport const config = { port: 6 };\n', 'named.config.mts');
    expect(await mistakes([], { file: named })).toBe(
      'named.config.mts: expected a default export; got exports: auth, config',
    );
    expect(await mistakes([], { file: fileOf('export {};\n', 'none.config.mjs') })).toBe(
      'none.config.mjs: expected a default export; got no export',
    );
    expect(await mistakes([], { file: fileOf('export default undefined;\n', 'undefined.config.mjs') })).toBe(
      'undefined.config.mjs expected settings, as "port: 9000"',
    );
    expect(await mistakes([], { file: fileOf('export default {};\n', 'empty.config.mjs') })).toBe('');
  });

  it('take a secret from the file that its variable names, without its line end', async () => {
    const secret = fileOf('redis://:pass@host\n', 'secret');
    const { settings, origin } = await resolved([], { env: { RIVULET_STORE_FILE: secret } });
    expect([settings.store, origin(['store'])]).toEqual(['redis://:pass@host', 'RIVULET_STORE_FILE']);
    const both = { RIVULET_STORE_FILE: secret, RIVULET_STORE: 'memory:' };
    expect(await mistakes([], { env: both })).toBe(
      'RIVULET_STORE and RIVULET_STORE_FILE are both set; remove one of them',
    );
    expect(await mistakes([], { env: { RIVULET_STORE_FILE: '/missing' } })).toContain(
      '/missing: there is no such file',
    );
  });

  it('print nothing of a file that a variable names by mistake', async () => {
    for (const content of [
      'hunter2',
      'hunter2: 1\n',
      'KEY=hunter2\nmemory:\n',
      'redis://host/hunter2',
      'sqlite:a\nhunter2\n',
    ]) {
      const text = await mistakes([], { env: { RIVULET_STORE_FILE: fileOf(content, 'wrong') } });
      expect(text).toBe(
        'RIVULET_STORE_FILE: expected a file with memory:, sqlite:PATH, redis://HOST, redis+cluster://HOST or postgres://HOST/DATABASE, and nothing else',
      );
    }
  });

  it('need secrets of 32 characters, wherever these come from, and do not print them', async () => {
    const [short, long] = ['too-short', 'x'.repeat(32)];
    const why = 'expected string length greater or equal to 32';
    const file = fileOf(`webhooks: { secrets: [${long}, ${short}] }\nauth:\n  ticketSecrets: [${short}]\n`);
    expect((await mistakes([], { file })).split('\n')).toEqual([
      `rivulet.yaml:1:${long.length + 25} webhooks.secrets.1: ${why}`,
      `rivulet.yaml:3:19 auth.ticketSecrets.0: ${why}`,
    ]);
    const env = { RIVULET_WEBHOOK_SECRET: `${long},${short}`, RIVULET_TICKET_SECRETS_FILE: fileOf(`${short}\n`, 's') };
    expect((await mistakes([], { env })).split('\n')).toEqual([
      `RIVULET_TICKET_SECRETS_FILE: ${why}`,
      `RIVULET_WEBHOOK_SECRET: ${why}`,
    ]);
    const { settings } = await resolved([], { env: { RIVULET_TICKET_SECRETS: `${long},${long}` } });
    expect(settings.auth.ticketSecrets).toEqual([long, long]);
  });

  it('need a public URL to which paths can be appended', async () => {
    const at = (url: string) => mistakes(['--public-url', url]);
    const expected = '--public-url: expected an http(s) URL such as https://agents.example.com; got';
    expect(await at('ftp://x.example')).toBe(`${expected} "ftp://x.example"`);
    expect(await at('https://x.example/path?q')).toBe(`${expected} one with a query`);
    expect(await at('https://x.example/?#f')).toBe(`${expected} one with a query and a fragment`);
    expect(await at('https://x.example/#f?q')).toBe(`${expected} one with a fragment`);
    expect(await at('https://me:word@x.example')).toBe(`${expected} one with a user or password`);
    expect(await at('HTTPS://x.example/path/')).toBe('');
  });

  it('need a store, hosts and origins that a server can use, before it starts', async () => {
    const file = fileOf('store: mysql://me:word@x\nallowHosts: [a.example:80]\nallowOrigins: [a.example]\n');
    expect((await mistakes([], { file })).split('\n')).toEqual([
      'rivulet.yaml:1:8 store: there is no store "mysql://me:***@x"; use memory:, sqlite:PATH, redis://HOST, redis+cluster://HOST or postgres://HOST/DATABASE',
      'rivulet.yaml:2:14 allowHosts.0: expected a host name without a port, such as agents.example.com; got "a.example:80"',
      'rivulet.yaml:3:16 allowOrigins.0: expected an origin such as https://app.example.com; got "a.example"',
    ]);
  });

  it('report what no server can use beside what does not fit the schema, and what does not fit together', async () => {
    const file = fileOf('port: x\nstore: mysql://x\nauth:\n  jwt: { issuer: https://id.example.com }\n');
    const env = { RIVULET_WEBHOOK_SECRET: 'short' };
    expect((await mistakes([], { file, env })).split('\n')).toEqual([
      'rivulet.yaml:1:7 port: expected integer',
      'rivulet.yaml:2:8 store: there is no store "mysql://x"; use memory:, sqlite:PATH, redis://HOST, redis+cluster://HOST or postgres://HOST/DATABASE',
      'auth.jwt: expected issuer, audience and jwks together; missing: audience, jwks',
      'RIVULET_WEBHOOK_SECRET: expected string length greater or equal to 32',
    ]);
    expect(await mistakes(['--no-auth', '--keys', 'keys.yaml'])).toMatch(/^--no-auth .* contradicts the keys/);
    // A wrong key is one mistake, not two.
    const wrong = await mistakes(['--jwt-issuer', 'https://x'], { env: { RIVULET_API_KEYS: 'alice=none' } });
    expect(wrong).toMatch(/^RIVULET_API_KEYS: pair 1: [^\n]*$/);
  });

  it('count an empty variable as not set', async () => {
    expect((await resolved([], { env: { PORT: '', RIVULET_STORE: '' } })).settings.port).toBe(8000);
  });

  it('each have a description, and a default or none', () => {
    for (const { path, schema } of rows()) expect(schema.description, path.join('.')).toMatch(/\w+/);
  });

  it('have a JSON Schema that requires no key', () => {
    const schema = JSON.parse(fileSchema());
    expect(schema.properties.log.properties.level.anyOf).toHaveLength(6);
    expect(schema.properties.port).toMatchObject({ type: 'integer', minimum: 0, default: 8000 });
    expect(fileSchema()).not.toMatch(/"(required|names)"/);
  });
});
