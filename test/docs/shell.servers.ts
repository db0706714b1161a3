import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, it } from 'vitest';
import approve from '../../agents/approve.ts';
import echo from '../../agents/echo.ts';
import { serveAll } from '../support/serve.ts';
import { type Block, blocks, inLanguage, pages, programOf } from './blocks.ts';
import { isCommand, shellOf } from './commands.ts';
import { expectOutput, runInShell } from './shell.ts';

const titled = (some: readonly Block[]) => some.map((block) => [block.place, block] as const);

const { url } = await serveAll([echo, approve]);

describe('curl in README and docs', () => {
  // Pages with commands of `rivulet` start processes: test/docs/commands.servers.ts runs those.
  const withCurl = pages.filter((page) => shellOf(page).length > 0 && !shellOf(page).some(isCommand));

  it.each(withCurl)('%s: prints what the page shows', async (page) => {
    const run = shellOf(page);
    const printed = await runInShell(run, { url });
    for (const [index, block] of run.entries()) expectOutput(block, printed[index] ?? '');
  });
});

describe('Python in README and docs', () => {
  const python = (...args: string[]) =>
    promisify(execFile)('python3', args, { env: { ...process.env, NO_PROXY: '*', no_proxy: '*' }, timeout: 200_000 });

  it.each(titled(inLanguage('python')))('%s prints what the page shows', async (_, block) => {
    const { stdout } = await python('-c', programOf(block, url));
    expectOutput(block, stdout);
  });

  it.each(titled(blocks.filter(({ language }) => language === 'python')))('%s compiles', async (_, { text }) => {
    await python('-c', 'import ast, sys; ast.parse(sys.argv[1])', text);
  });
});
