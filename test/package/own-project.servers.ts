import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startLlm } from '../agents/llm.ts';
import { type Block, blocks, root } from '../docs/blocks.ts';
import { servingLines, withoutServers } from '../docs/commands.ts';
import { docsModel } from '../docs/model.ts';
import { expectOutput } from '../docs/shell.ts';
import { serveAsUser, typeAsUser, type UsersServer } from '../support/user.ts';

/** The page that says how to make a project. */
const guide = 'docs/getting-started.md';

let folder: string;
let clone: string;
let project: string;

/** What a clone does not have, by name. */
const notCloned = new Set(['node_modules', 'dist', '.git', 'data', 'built']);

/** The block of shell of a page that has this command. */
function blockWith(command: string, page = guide): Block {
  const found = blocks.find((block) => block.page === page && block.language === 'sh' && block.text.includes(command));
  if (found === undefined) throw new Error(`${page} has no block of shell with "${command}"`);
  return found;
}

/** Types a block, without the lines that start a server; its clients talk to the server at `url`. */
const type = (cwd: string, block: Block, url?: string): Promise<string> =>
  typeAsUser(cwd, withoutServers(block).text, url === undefined ? {} : { RIVULET_URL: url });

const serve = (cwd: string, block: Block): Promise<UsersServer> => serveAsUser(cwd, servingLines(block).join('\n'));

// Each project downloads its packages.
describe('what README and getting-started.md tell a newcomer to type', { timeout: 600_000 }, () => {
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rivulet-own-'));
    clone = join(folder, 'rivulet');
    project = join(folder, 'my-agents');
    cpSync(root, clone, { recursive: true, filter: (path) => !notCloned.has(basename(path)) });
    // In place of `npm ci`, which .ci/run runs in a real clone.
    symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'));
  });
  beforeEach(() => rmSync(project, { recursive: true, force: true }));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('starts the server in a clone, which says that it is built, and then where it listens', async () => {
    const block = blockWith('npm ci && npm start', 'README.md');
    const { printed } = await serveAsUser(clone, block.text.replace('npm ci && ', ''));
    expectOutput(block, printed);
  });

  it('installs Rivulet into an empty folder, and runs an agent, a model with a tool, and the same without a model', async () => {
    await type(clone, blockWith('npm pack -q --pack-destination'));
    const [write, talk] = [blockWith('rivulet new hello'), blockWith('rivulet run hello')];
    await type(project, write);
    const first = await serve(project, write);
    expectOutput(talk, await type(project, talk, first.url));
    await first.stop();

    const llm = await startLlm(docsModel);
    onTestFinished(() => llm.close());
    for (const { page, text, marks } of blocks) {
      const file = marks.get('file');
      if (['README.md', guide].includes(page) && file !== undefined) writeFileSync(join(project, file), text);
    }
    const [model, ask] = [blockWith('npm install ai'), blockWith('rivulet run support')];
    await type(project, model);
    const second = await serve(project, { ...model, text: model.text.replace('http://127.0.0.1:11434/v1', llm.url) });
    const answer = await type(project, ask, second.url);
    expectOutput(ask, answer);
    expect(llm.requests.map(({ headers, body }) => [headers.authorization, body.model])).toEqual([
      ['Bearer none', 'llama3.2'],
      ['Bearer none', 'llama3.2'],
    ]);
    const tracked = await type(project, { ...ask, text: ask.text.replace('support', 'tracker') }, second.url);
    expectOutput(ask, tracked);
  });

  it('makes a project with create-rivulet, which has a copy of Rivulet, and passes its test', async () => {
    await type(clone, blockWith('create-rivulet'));
    const { dependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
    expect(dependencies.rivulet).toBe('file:./rivulet-0.1.0.tgz');
    expect(await typeAsUser(project, 'npm test')).toMatch(/Tests +1 passed \(1\)/);
  });
});
