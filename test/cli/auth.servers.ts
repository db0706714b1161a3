import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rivulet } from '../support/command.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';

const project = makeProject({
  'keys.yaml': '',
  'agents/env.js': `
    import { execFileSync } from 'node:child_process';
    import { defineAgent } from 'rivulet';
    export default defineAgent({ name: 'env', description: 'Prints the environment, and the principal.' }, (_, context) =>
      JSON.stringify([process.env, execFileSync('env').toString(), context.principal]));`,
  'agents/hang.js': `
    import { defineAgent } from 'rivulet';
    import { concat, NEVER, of } from 'rxjs';
    export default defineAgent({ name: 'hang', description: 'Never ends.' }, () => concat(of('hello'), NEVER));`,
});
afterAll(project.remove);

const newKey = async (...args: string[]): Promise<string> => {
  const { code, out } = await rivulet(['keys', 'new', ...args], { cwd: project.folder });
  expect(code).toBe(0);
  return out.trim();
};

describe('a server with keys', () => {
  let server: RivuletProcess;
  let url = '';
  let alice = '';
  let carol = '';

  beforeAll(async () => {
    carol = await newKey('--principal', 'carol');
    alice = await newKey('--principal', 'alice', '--file', 'keys.yaml');
    const args = ['serve', '--host', '0.0.0.0', '--port', '0', '--store', 'memory:', '--keys', 'keys.yaml'];
    const env = { RIVULET_API_KEYS: `carol=${carol}`, RIVULET_TICKET_SECRETS: 'x'.repeat(40) };
    server = new RivuletProcess([...args, '--limit', 'shutdownGrace=1000'], env, project.folder);
    url = await server.url();
  });
  afterAll(async () => void (await server.stop('SIGKILL')));

  const call = (args: string[], env: Record<string, string> = {}) =>
    rivulet([...args, '--url', url], { env, cwd: project.folder });

  it('may listen on all addresses, and prints a command that sends a token', async () => {
    expect(server.out).toContain('-H "Authorization: Bearer $RIVULET_TOKEN"');
    expect(server.err).not.toContain('no authentication');
  });

  it('lets the command line in with RIVULET_TOKEN or --token, and says what to do without', async () => {
    expect((await call(['agents'], { RIVULET_TOKEN: alice })).out).toContain('env');
    expect((await call(['agents', '--token', carol])).out).toContain('env');
    const { code, err } = await call(['agents']);
    expect(code).toBe(2);
    expect(err).toContain('The request has no credentials');
    expect(err).toContain('RIVULET_TOKEN or --token');
    const wrong = await call(['agents'], { RIVULET_TOKEN: `${alice.slice(0, -1)}-` });
    expect(wrong.err).toContain('wrong, or have expired');
    expect(wrong.err).not.toContain(alice.slice(13, 30));
  });

  it('hides its secrets from agents, which know the principal', async () => {
    const { out } = await call(['run', 'env', 'x'], { RIVULET_TOKEN: carol });
    expect(out).toContain('"id":"carol"');
    for (const secret of [carol, alice, 'x'.repeat(40), 'RIVULET_API_KEYS']) expect(out).not.toContain(secret);
  });

  it('accepts a key that is added to the file while it runs', async () => {
    const bob = await newKey('--principal', 'bob', '--file', 'keys.yaml');
    await expect
      .poll(async () => (await fetch(`${url}/agents`, { headers: { 'x-api-key': bob } })).status, { interval: 500 })
      .toBe(200);
    // A file that is broken, half written for example, changes nothing.
    const good = readFileSync(join(project.folder, 'keys.yaml'), 'utf8');
    writeFileSync(join(project.folder, 'keys.yaml'), '- id: [');
    await expect.poll(() => server.out + server.err).toContain('the last good keys stay in use');
    expect((await fetch(`${url}/agents`, { headers: { 'x-api-key': bob } })).status).toBe(200);
    writeFileSync(join(project.folder, 'keys.yaml'), good);
  });

  it.runIf(process.platform === 'linux')('does not show the token of a command among its arguments', async () => {
    const command = new RivuletProcess(['run', 'hang', 'x', '--token', alice, '--url', url], {}, project.folder);
    await expect.poll(() => command.out).toContain('hello');
    expect(readFileSync(`/proc/${command.child.pid}/cmdline`, 'utf8')).not.toContain(alice.slice(13, 30));
    await command.stop('SIGKILL');
  });

  it('says at Ctrl-C which runs it waits for, and has printed no key', async () => {
    await server.stop('SIGINT');
    expect(server.err).toMatch(/Waiting for (one run|\d+ runs) to end/);
    for (const key of [alice, carol]) expect(server.out + server.err).not.toContain(key.slice(4));
  });
});

it('refuses to listen on all addresses without authentication', async () => {
  const { code, err } = await rivulet(['serve', '--host', '0.0.0.0', '--port', '0', '--store', 'memory:'], {
    cwd: project.folder,
  });
  expect(code).toBe(2);
  expect(err).toContain('other computers reach 0.0.0.0, and the server has no authentication: give --keys FILE');
});
