import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkNode } from '../../src/cli/commands/doctor.ts';
import { openDatabase } from '../../src/stores/sqlite/driver.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { rivuletHere } from '../support/command.ts';
import { agentFile, projectFolder } from './server-project.ts';

const files = { 'agents/a.js': agentFile('a') };

describe('rivulet doctor', () => {
  it('finds no problem where a server would start, and makes no file', async (t) => {
    const cwd = projectFolder(files, t);
    const { code, out } = await rivuletHere(['doctor', '--port', '0'], { cwd });
    expect(out).toContain('No problem found.');
    expect(out).toMatch(/ok +agents +a\n/);
    expect(out).toMatch(/ok +store +sqlite:\.\/data\/rivulet\.db: nothing stored yet\n/);
    expect(code).toBe(0);
    expect((await rivuletHere(['doctor', '--port', '0'], { cwd })).out).toContain('nothing stored yet');
  });

  it('reports each problem with what to do, and exits with 1', async (t) => {
    const cwd = projectFolder({ 'agents/a.js': 'export default 5;\n', 'rivulet.yaml': 'host: 0.0.0.0\n' }, t);
    mkdirSync(join(cwd, 'data'));
    const other = openDatabase(join(cwd, 'data/rivulet.db'));
    other.exec('PRAGMA user_version = 99');
    other.close();
    chmodSync(join(cwd, 'data'), 0o777);
    const taken = createServer((socket) => socket.end('no HTTP'));
    await new Promise<void>((resolve) => taken.listen(0, '0.0.0.0', resolve));
    t.onTestFinished(() => void taken.close());
    const address = taken.address();
    const port = typeof address === 'object' ? String(address?.port) : '';
    const { code, out } = await rivuletHere(['doctor', '--port', port], { cwd });
    expect(out).toMatch(/problem +agents +agents\/a\.js: its default export is not an agent/);
    expect(out).toMatch(/problem +address +0\.0\.0\.0:\d+ is in use by another program; stop it/);
    expect(out).toMatch(/problem +callers +0\.0\.0\.0 has no authentication.*; give --keys/);
    expect(out).toMatch(/problem +store +.* has version 99, this Rivulet knows \d+; install the newer/);
    expect(out).toMatch(/problem +files +.*data: every user may write it \(777\); chmod o-w/);
    expect(out).toContain('5 problems found.');
    expect(code).toBe(1);
  });

  it('checks keys and the provider of tokens', async (t) => {
    const cwd = projectFolder({ ...files, 'keys.yaml': '[]\n', 'jwks.json': '{"keys":[]}' }, t);
    const jwt = ['--jwt-issuer', 'https://id.example.com', '--jwt-audience', 'rivulet', '--jwks'];
    const none = await rivuletHere(['doctor', '--port', '0', '--keys', 'keys.yaml', ...jwt, 'none.json'], { cwd });
    expect(none.out).toMatch(/problem +callers +no API key is valid; make one with: rivulet keys new/);
    expect(none.out).toMatch(/problem +callers +the public keys none\.json cannot be read: ENOENT/);
    const missing = await rivuletHere(['doctor', '--port', '0', '--keys', 'no.yaml'], { cwd });
    expect(missing.out).toMatch(
      /problem +callers +no\.yaml: there is no such file; make one with: npx rivulet keys new/,
    );
    const fine = await rivuletHere(['doctor', '--port', '0', ...jwt, 'jwks.json'], { cwd });
    expect(fine.out).toMatch(/ok +callers +public keys of the token issuer: jwks\.json/);
    expect([none.code, fine.code]).toEqual([1, 0]);
  });

  it('finds what keeps serve from starting: files of keys that a group may write, and a port of metrics in use', async (t) => {
    const cwd = projectFolder({ ...files, 'keys.yaml': '[]\n', 'jwks.json': '{"keys":[]}' }, t);
    for (const name of ['keys.yaml', 'jwks.json']) chmodSync(join(cwd, name), 0o664);
    const taken = createServer((socket) => socket.end('no HTTP'));
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    t.onTestFinished(() => void taken.close());
    const address = taken.address();
    const port = typeof address === 'object' ? String(address?.port) : '';
    const jwt = ['--jwt-issuer', 'https://id.example.com', '--jwt-audience', 'rivulet', '--jwks', 'jwks.json'];
    const all = ['--port', '0', '--metrics-port', port, '--keys', 'keys.yaml', ...jwt];
    const { code, out } = await rivuletHere(['doctor', ...all], { cwd });
    expect(out).toMatch(/problem +metrics +127\.0\.0\.1:\d+ is in use by another program; stop it/);
    expect(out).toMatch(/problem +files +keys\.yaml: other users may write it \(664\); chmod go-w keys\.yaml/);
    expect(out).toMatch(/problem +files +jwks\.json: other users may write it \(664\)/);
    expect(code).toBe(1);
  });

  it('notes data that other users may read', async (t) => {
    const cwd = projectFolder(files, t);
    const store = new SqliteStore(join(cwd, 'data/rivulet.db'));
    const find = async (): Promise<string> => (await rivuletHere(['doctor', '--port', '0'], { cwd })).out;
    expect(await find()).toMatch(/ok +files +no other user may read the data/);
    for (const [path, mode] of [
      ['data', 0o755],
      ['data/rivulet.db', 0o644],
      ['data/rivulet.db-wal', 0o640],
      ['data/rivulet.db-shm', 0o604],
    ] as const) {
      const before = statSync(join(cwd, path)).mode & 0o777;
      chmodSync(join(cwd, path), mode);
      expect(await find()).toMatch(
        new RegExp(
          `note +files +.*${path}: other users may read the data \\(${mode.toString(8)}\\); chmod go-rwx .*${path}\n`,
        ),
      );
      chmodSync(join(cwd, path), before);
    }
    await store.close();
  });

  it('names each file of an agent that does not load', async (t) => {
    const cwd = projectFolder({ ...files, 'agents/bad.js': 'nope;', 'agents/none.js': '' }, t);
    const { code, out } = await rivuletHere(['doctor', '--port', '0'], { cwd });
    expect(code).toBe(1);
    expect(out).toMatch(
      /problem +agents +agents\/bad\.js: does not load: nope is not defined .*; serve would skip the file/,
    );
    expect(out).toMatch(
      /problem +agents +agents\/none\.js: its default export is not an agent; .*; serve would skip the file/,
    );
    expect(out).toContain('2 problems found.');
  });

  it('prints no credentials of URLs', async (t) => {
    const cwd = projectFolder(files, t);
    const jwt = ['--jwt-issuer', 'https://id.example.com', '--jwt-audience', 'rivulet'];
    for (const jwks of ['http://me:hush@127.0.0.1:9/keys', 'http://127.0.0.1:9/keys?api_key=hush']) {
      for (const command of [['doctor', '--port', '0'], ['config']]) {
        const { out, err } = await rivuletHere([...command, ...jwt, '--jwks', jwks], { cwd });
        expect(out).toContain('127.0.0.1:9/keys');
        expect(out + err).not.toContain('hush');
      }
    }
  });

  it('exits with 2 where the settings have mistakes', async (t) => {
    const cwd = projectFolder({ ...files, 'rivulet.yaml': 'prot: 1\n' }, t);
    const { code, err } = await rivuletHere(['doctor'], { cwd });
    expect([code, err]).toEqual([2, 'rivulet: rivulet.yaml:1:1 prot: there is no such setting. Did you mean port?\n']);
  });

  it('knows which versions of Node work', () => {
    expect(['18.20.0', '20.18.1', '20.19.0', '22.1.0', '24.0.0'].map((found) => checkNode(found).level)).toEqual([
      'problem',
      'problem',
      'note',
      'ok',
      'ok',
    ]);
  });
});

describe('rivulet config', () => {
  it('prints each setting, where it came from, and no secret', async (t) => {
    const cwd = projectFolder({ 'rivulet.yaml': 'port: 9000\nlimits:\n  runTtl: 5\n' }, t);
    writeFileSync(join(cwd, 'secret'), 'redis://:hush@store:6379\n');
    const env = { RIVULET_STORE_FILE: join(cwd, 'secret'), LOG_LEVEL: 'info' };
    const { code, out, err } = await rivuletHere(['config', '--host', '0.0.0.0'], { cwd, env });
    expect(out).toMatch(/^port +9000 +rivulet\.yaml:1:7$/m);
    expect(out).toMatch(/^limits\.runTtl +5 +rivulet\.yaml:3:11$/m);
    expect(out).toMatch(/^host +0\.0\.0\.0 +--host$/m);
    expect(out).toMatch(/^log\.level +info +LOG_LEVEL$/m);
    expect(out).toMatch(/^store +redis:\/\/:\*\*\*@store:6379 +RIVULET_STORE_FILE$/m);
    expect(out).toMatch(/^docs +true +default$/m);
    expect(out).toContain('Listens on: 0.0.0.0:9000');
    expect(err).toContain('Warning: 0.0.0.0 has no authentication');
    expect(out + err).not.toContain('hush');
    expect(code).toBe(0);
  });

  it('prints warnings only with --check, and every mistake with exit code 2', async (t) => {
    const cwd = projectFolder({ 'rivulet.yaml': 'store: "memory:"\n', 'wrong.yaml': 'port: x\nhost: 5\n' }, t);
    const fine = await rivuletHere(['config', '--check'], { cwd });
    expect([fine.code, fine.out]).toEqual([0, '']);
    expect(fine.err).toContain('runs and sessions are lost');
    const wrong = await rivuletHere(['config', '--check', '--config', 'wrong.yaml'], { cwd });
    expect([wrong.code, wrong.err]).toEqual([
      2,
      'rivulet: wrong.yaml:1:7 port: expected integer\nwrong.yaml:2:7 host: expected string\n',
    ]);
  });

  it('warns where a proxy must be in front, and is not known', async (t) => {
    const cwd = projectFolder({}, t);
    const behindTls = ['config', '--check', '--keys', 'keys.yaml', '--public-url', 'https://agents.example.com'];
    expect((await rivuletHere(behindTls, { cwd })).err).toContain('trustProxy is not set');
    expect((await rivuletHere([...behindTls, '--trust-proxy', '10.0.0.0/8'], { cwd })).err).toBe('');
  });

  it('fails with --check where serve would refuse to listen', async (t) => {
    const cwd = projectFolder({}, t);
    const open = await rivuletHere(['config', '--check', '--host', '0.0.0.0'], { cwd });
    expect([open.code, open.err]).toEqual([
      2,
      expect.stringContaining('the server has no authentication: give --keys'),
    ]);
    const behindProxy = await rivuletHere(['config', '--check', '--host', '0.0.0.0', '--no-auth'], { cwd });
    expect(behindProxy.code).toBe(0);
  });

  it('prints the JSON Schema also where the file has mistakes', async (t) => {
    const cwd = projectFolder({ 'rivulet.yaml': 'prot: 1\n' }, t);
    const { code, out } = await rivuletHere(['config', '--schema'], { cwd });
    expect([code, JSON.parse(out).type]).toEqual([0, 'object']);
  });

  it('refuses a folder with two configurations', async (t) => {
    const cwd = projectFolder({ 'rivulet.yaml': '', 'rivulet.json': '{}' }, t);
    const { code, err } = await rivuletHere(['config'], { cwd });
    expect([code, err]).toEqual([2, expect.stringContaining('rivulet.yaml and rivulet.json are both here')]);
  });
});
