import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { rivulet } from '../support/command.ts';
import { makeProject } from '../support/project.ts';

function project({ onTestFinished }: TestContext, files: Record<string, string> = {}): string {
  const { folder, remove } = makeProject(files);
  onTestFinished(remove);
  return folder;
}

describe.concurrent('rivulet new', { timeout: 60_000 }, () => {
  // new.servers.ts runs the test that it writes.
  it('writes an agent and a test', async (t) => {
    const cwd = project(t);
    const { code, out } = await rivulet(['new', 'my-first'], { cwd });
    expect(code).toBe(0);
    expect(out).toContain('Wrote agents/my-first.ts and agents/my-first.test.ts');
    expect(out).not.toContain('type=module');
    expect(await readFile(join(cwd, 'agents/my-first.ts'), 'utf8')).toContain("name: 'my-first'");
    expect(await readFile(join(cwd, 'agents/my-first.test.ts'), 'utf8')).toContain("from './my-first.ts'");
  });

  it('overwrites nothing', async (t) => {
    const cwd = project(t, { 'agents/mine.test.ts': 'keep me' });
    const { code, err } = await rivulet(['new', 'mine'], { cwd });
    expect(code).toBe(2);
    expect(err).toMatch(/^rivulet: agents\/mine\.test\.ts is there already/);
    expect(await readFile(join(cwd, 'agents/mine.test.ts'), 'utf8')).toBe('keep me');
    expect(existsSync(join(cwd, 'agents/mine.ts'))).toBe(false);
  });

  it('takes no name that no agent can have', async (t) => {
    const cwd = project(t);
    const { code, err } = await rivulet(['new', '../Oops'], { cwd });
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(/^rivulet: "\.\.\/Oops" is no name for an agent: a name is/),
    ]);
    expect(existsSync(join(cwd, 'agents'))).toBe(false);
  });

  it('says so where the project’s files would not be modules', async (t) => {
    const cwd = project(t, { 'package.json': '{}' });
    expect((await rivulet(['new', 'one'], { cwd })).out).toContain('npm pkg set type=module');
  });
});
