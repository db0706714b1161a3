import { describe, expect, it } from 'vitest';
import { rivuletHere } from '../support/command.ts';
import { projectFolder } from './server-project.ts';

/** The value and the origin of a setting, as `rivulet config` prints them. */
async function setting(key: string, args: string[], where: Parameters<typeof rivuletHere>[1]) {
  const { out, err } = await rivuletHere(['config', ...args], where);
  const line = out.split('\n').find((text) => text.startsWith(`${key} `));
  return line === undefined ? err : line.replaceAll(/ +/g, ' ').trim();
}

describe('the file of variables', () => {
  it('is .env of the current folder, and the origin of a setting names it', async (t) => {
    const cwd = projectFolder({ '.env': '# the port\nexport PORT="9001"\n' }, t);
    expect(await setting('port', [], { cwd })).toBe('port 9001 PORT of .env');
  });

  it('gives way to the environment and to flags', async (t) => {
    const cwd = projectFolder({ '.env': 'PORT=9001\nHOST=::1\n' }, t);
    const env = { PORT: '9002' };
    expect(await setting('port', [], { cwd, env })).toBe('port 9002 PORT');
    expect(await setting('host', ['--host', '127.0.0.2'], { cwd, env })).toBe('host 127.0.0.2 --host');
  });

  it.each([[['--env-file', 'other.env']], [['--env-file=other.env']]])('is the one that %j names', async (args) => {
    const cwd = projectFolder({ '.env': 'PORT=9001\nHOST=::1\n', 'other.env': 'PORT=9003\n' });
    expect(await setting('port', args, { cwd })).toBe('port 9003 PORT of other.env');
    expect(await setting('host', args, { cwd })).toBe('host 127.0.0.1 default');
  });

  it('is not read with --no-env-file', async (t) => {
    const cwd = projectFolder({ '.env': 'PORT=9001\n' }, t);
    expect(await setting('port', ['--no-env-file'], { cwd })).toBe('port 8000 default');
  });

  it('is named where it is missing, but .env may be missing, or be a folder', async (t) => {
    const cwd = projectFolder({ '.env/bin/python': '' }, t);
    expect(await setting('port', [], { cwd })).toBe('port 8000 default');
    expect(await rivuletHere(['config', '--env-file', 'no.env'], { cwd })).toMatchObject({
      code: 2,
      err: 'rivulet: no.env: there is no such file\n',
    });
  });

  it('is named in the message about a mistake in it', async (t) => {
    const cwd = projectFolder({ '.env': 'PORT=many\n' }, t);
    expect(await setting('port', [], { cwd })).toMatch(/^rivulet: PORT of \.env: expected integer; got "many"/);
  });
});
