import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import rivulet from '../../package.json' with { type: 'json' };
import { newFolder } from '../support/folder.ts';
import { create } from './create.ts';

const read = (...path: string[]): string => readFileSync(join(...path), 'utf8');

describe.concurrent('create-rivulet', () => {
  it('writes a project into a new folder, with the versions that Rivulet is tested with', async (t) => {
    const cwd = newFolder(t.onTestFinished);
    await create(cwd, ['My Agents']);
    const { name, type, scripts, dependencies, devDependencies } = JSON.parse(read(cwd, 'My Agents/package.json'));
    expect([name, type]).toEqual(['my-agents', 'module']);
    expect(Object.keys(scripts)).toEqual(['start', 'dev', 'test', 'check']);
    expect(dependencies).toEqual({ rivulet: rivulet.version, rxjs: rivulet.dependencies.rxjs });
    expect(devDependencies.vitest).toBe(rivulet.devDependencies.vitest);
    expect(read(cwd, 'My Agents/.gitignore')).toContain('node_modules/');
    expect(read(cwd, 'My Agents/agents/hello.test.ts')).toContain("from './hello.js'");
  });

  it('writes an agent of a language model, and a chat page, with their packages', async (t) => {
    const cwd = newFolder(t.onTestFinished);
    await create(cwd, ['chat', '--template', 'chat-ui']);
    const { scripts, dependencies, devDependencies } = JSON.parse(read(cwd, 'chat/package.json'));
    expect(scripts['dev:page']).toBe('vite page');
    expect([dependencies.openai, devDependencies.ai]).toEqual([
      rivulet.devDependencies.openai,
      rivulet.devDependencies.ai,
    ]);
    expect(read(cwd, 'chat/page/main.tsx')).toContain("?? 'assistant'");
    expect(read(cwd, 'chat/.env.example')).toContain('OPENAI_BASE_URL');
  });

  it('refuses a template that there is not', async (t) => {
    await expect(create(newFolder(t.onTestFinished), ['chat', '--template', 'vue'])).rejects.toMatchObject({
      code: 2,
      stderr: 'create-rivulet: --template vue: expected one of hello, llm, chat-ui\n',
    });
  });

  it('has the version of Rivulet', () => {
    expect(JSON.parse(read('packages/create-rivulet/package.json')).version).toBe(rivulet.version);
  });

  it('writes into the current folder if none is named and no terminal can ask', async (t) => {
    const cwd = newFolder(t.onTestFinished);
    mkdirSync(join(cwd, '.git'));
    const { stdout } = await create(cwd, []);
    expect(existsSync(join(cwd, 'package.json'))).toBe(true);
    expect(stdout).not.toContain('cd ');
  });

  it('refuses a folder that is not empty, unless it may replace files', async (t) => {
    const cwd = newFolder(t.onTestFinished);
    writeFileSync(join(cwd, 'README.md'), 'mine');
    writeFileSync(join(cwd, 'notes.txt'), 'mine');
    await expect(create(cwd, [])).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^create-rivulet: .* is not empty; choose another folder, or add --force/),
    });
    expect(existsSync(join(cwd, 'package.json'))).toBe(false);
    await create(cwd, ['.', '--force']);
    expect([read(cwd, 'README.md').startsWith('# '), read(cwd, 'notes.txt')]).toEqual([true, 'mine']);
  });

  it.for<[string, string[], string[]]>([
    ['npm/11.0.0 node/v20.19.0', ['npm install', 'npm test', 'npm run dev'], []],
    ['pnpm/12.21.0 npm/? node/v20.19.0', ['pnpm install', 'pnpm test', 'pnpm dev'], ['pnpm-workspace.yaml']],
    ['yarn/1.22.22 npm/? node/v20.19.0', ['yarn install', 'yarn test', 'yarn dev'], []],
    ['yarn/4.9.0 npm/? node/v20.19.0', ['yarn install', 'yarn test', 'yarn dev'], ['.yarnrc.yml']],
  ])('names the commands of the package manager, and writes its settings: %s', async ([agent, commands, files], t) => {
    const cwd = newFolder(t.onTestFinished);
    const { stdout } = await create(cwd, ['mine'], agent);
    expect(stdout.split('\n').slice(-5)).toEqual(['  cd mine', ...commands.map((command) => `  ${command}`), '']);
    const written = ['pnpm-workspace.yaml', '.yarnrc.yml'].filter((name) => existsSync(join(cwd, 'mine', name)));
    expect(written).toEqual(files);
  });

  it('quotes a folder that a shell would read as several words', async (t) => {
    const cwd = newFolder(t.onTestFinished);
    expect((await create(cwd, ['My Agents!'])).stdout).toContain("\n  cd 'My Agents!'\n");
  });

  it('copies a packed Rivulet into the project, which then depends on this file', async (t) => {
    const cwd = newFolder(t.onTestFinished);
    mkdirSync(join(cwd, 'clone'));
    writeFileSync(join(cwd, 'clone/rivulet-0.1.0.tgz'), 'packed');
    await create(cwd, ['mine', '--rivulet', 'clone/rivulet-0.1.0.tgz']);
    expect(JSON.parse(read(cwd, 'mine/package.json')).dependencies.rivulet).toBe('file:./rivulet-0.1.0.tgz');
    expect(read(cwd, 'mine/rivulet-0.1.0.tgz')).toBe('packed');
  });

  it.for(['missing.tgz', 'clone'])(
    'refuses a packed Rivulet that npm could not install, and writes nothing: %s',
    async (path, t) => {
      const cwd = newFolder(t.onTestFinished);
      mkdirSync(join(cwd, 'clone'));
      await expect(create(cwd, ['mine', '--rivulet', path])).rejects.toMatchObject({
        code: 2,
        stderr: `create-rivulet: --rivulet ${path}: expected a .tgz file; run "npm pack" in a clone of Rivulet to write one\n`,
      });
      expect(existsSync(join(cwd, 'mine'))).toBe(false);
    },
  );

  it('refuses a path that is a file', async (t) => {
    const cwd = newFolder(t.onTestFinished);
    writeFileSync(join(cwd, 'taken'), '');
    for (const path of ['taken', 'taken/inside']) {
      await expect(create(cwd, [path])).rejects.toMatchObject({
        code: 2,
        stderr: expect.stringMatching(
          /^create-rivulet: .*taken.* is a file, or is inside of one; choose another folder/,
        ),
      });
    }
  });

  it('refuses what it does not know, and prints its help', async (t) => {
    const cwd = newFolder(t.onTestFinished);
    await expect(create(cwd, ['a', 'b'])).rejects.toMatchObject({ code: 2 });
    await expect(create(cwd, ['--frce'])).rejects.toMatchObject({ code: 2 });
    expect((await create(cwd, ['--help'])).stdout).toMatch(/^Usage: npm create rivulet/);
  });
});
