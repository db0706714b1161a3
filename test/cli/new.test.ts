import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rivuletHere } from '../support/command.ts';
import { projectFolder } from './server-project.ts';

describe('rivulet new', () => {
  // new.servers.ts checks the types of both files, and runs the test.
  it('writes an agent and a test', async (t) => {
    const cwd = projectFolder({}, t);
    const { code, out } = await rivuletHere(['new', 'my-first'], { cwd });
    expect(code).toBe(0);
    expect(out).toContain('Wrote agents/my-first.ts and agents/my-first.test.ts');
    expect(out).not.toContain('type=module');
    expect(await readFile(join(cwd, 'agents/my-first.ts'), 'utf8')).toContain("name: 'my-first'");
    expect(await readFile(join(cwd, 'agents/my-first.test.ts'), 'utf8')).toContain("from './my-first.js'");
  });

  it('prints the packages that the project has not got yet', async (t) => {
    const dependencies = '{"type":"module","dependencies":{"rxjs":"^7.8.2"}}';
    const cwd = projectFolder({ 'package.json': dependencies }, t);
    expect((await rivuletHere(['new', 'one'], { cwd })).out).toMatch(/^ {2}npm install --save-dev vitest$/m);
  });

  it('overwrites no file', async (t) => {
    const cwd = projectFolder({ 'agents/mine.test.ts': 'keep me' }, t);
    const { code, err } = await rivuletHere(['new', 'mine'], { cwd });
    expect(code).toBe(2);
    expect(err).toMatch(/^rivulet: agents\/mine\.test\.ts already exists/);
    expect(await readFile(join(cwd, 'agents/mine.test.ts'), 'utf8')).toBe('keep me');
    expect(existsSync(join(cwd, 'agents/mine.ts'))).toBe(false);
  });

  it('refuses an invalid agent name', async (t) => {
    const cwd = projectFolder({}, t);
    const { code, err } = await rivuletHere(['new', '../Oops'], { cwd });
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(/^rivulet: "\.\.\/Oops" is not a valid agent name: a name is/),
    ]);
    expect(existsSync(join(cwd, 'agents'))).toBe(false);
  });

  it('prints how to make the project’s files ES modules', async (t) => {
    const cwd = projectFolder({ 'package.json': '{}' }, t);
    expect((await rivuletHere(['new', 'one'], { cwd })).out).toContain('npm pkg set type=module');
  });
});
