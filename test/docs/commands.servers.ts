import { chmodSync, cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { RivuletProcess } from '../support/process.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { inLanguage, pages, root } from './blocks.ts';
import { isCommand, servingLines, shellOf } from './commands.ts';
import { docsProject, folderOf } from './project.ts';
import { expectOutput, runInShell } from './shell.ts';

const places = { redis: await redisPlace(), postgres: await postgresPlace() };
afterAll(() => Promise.all([places.redis?.remove(), places.postgres?.remove()]));

const withCommands = pages.filter((page) => shellOf(page).some(isCommand));

/** A folder of programs that stand for `npx rivulet`, `rivulet` and `npm`. */
function programs(folder: string): string {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const main = join(root, 'dist/cli/main.js');
  const npx = `[ "$1" = rivulet ] && { shift; exec "${process.execPath}" "${main}" "$@"; }\nexec "${root}/node_modules/.bin/$1" "\${@:2}"`;
  const scripts = { rivulet: `exec "${process.execPath}" "${main}" "$@"`, npx };
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(bin, name), `#!/usr/bin/env bash\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return bin;
}

/** A project as the reader of the page has it: the files of its blocks, and the agents that come with Rivulet. */
function readersProject(page: string): { folder: string; bin: string } {
  const project = docsProject('http://127.0.0.1:8000');
  onTestFinished(() => project.remove());
  const folder = join(project.folder, folderOf({ page }));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  symlinkSync(join(project.folder, 'node_modules'), join(folder, 'node_modules'));
  for (const name of ['agents', 'examples'])
    cpSync(join(root, name), join(folder, name), { recursive: true, force: false });
  return { folder, bin: programs(project.folder) };
}

describe('commands in README and docs', () => {
  it.each(withCommands)('%s: print what the page shows', async (page) => {
    const { folder, bin } = readersProject(page);
    const env = { PATH: `${bin}:${process.env.PATH}` };
    const run = shellOf(page);
    // What stands above the line that starts the server comes before it, such as writing an agent.
    const serving = inLanguage('sh').filter((block) => block.page === page);
    const first = serving.findIndex((block) => servingLines(block).length > 0);
    const before = run.slice(0, first + 1);
    const printed = await runInShell(before, { url: 'http://127.0.0.1:8000', cwd: folder, env });
    const server = new RivuletProcess(['serve', '--port', '0', '--store', 'sqlite:./data/rivulet.db'], {}, folder);
    onTestFinished(async () => void (await server.stop()));
    printed.push(...(await runInShell(run.slice(first + 1), { url: await server.url(), cwd: folder, env })));
    for (const [index, block] of run.entries()) expectOutput(block, printed[index] ?? '');
  });
});

const lines = [...new Set(inLanguage('sh').flatMap(servingLines))].filter((line) => !line.startsWith('npm run'));

describe('servers that README and docs start', () => {
  it.each(lines)('%s comes up', async (line) => {
    const { folder } = readersProject('README.md');
    mkdirSync(join(folder, 'my-agents'), { recursive: true });
    cpSync(join(root, 'agents/echo.ts'), join(folder, 'my-agents/echo.ts'));
    const shared = /(redis|postgres):\/\/\S+/.exec(line);
    const place = shared === null ? undefined : places[shared[1] === 'redis' ? 'redis' : 'postgres'];
    if (shared !== null && place === undefined) return;
    const [assigned = '', command = ''] =
      /^((?:\w+=\S+ )*)(.*)$/.exec(line.replace(shared?.[0] ?? '', place?.url ?? ''))?.slice(1) ?? [];
    const words = command
      .replace(/^npm start(?: --)?/, 'rivulet serve')
      .replace(/^(npx )?rivulet /, '')
      .split(/\s+/);
    const env = Object.fromEntries(
      assigned
        .trim()
        .split(' ')
        .filter(Boolean)
        .map((pair) => pair.split(/=(.*)/s).slice(0, 2)),
    );
    const port = words[0] === 'serve' ? ['--port', '0'] : [];
    const server = new RivuletProcess([...words.filter((word) => word !== ''), ...port], env, folder);
    onTestFinished(async () => void (await server.stop('SIGKILL')));
    await expect.poll(() => server.out + server.err).toMatch(/listening at|executes runs of/);
  });

  it('names a program that is built', () => expect(existsSync(join(root, 'dist/cli/main.js'))).toBe(true));
});
