import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runAsUser as run, serveAsUser } from '../support/user.ts';

const root = resolve(import.meta.dirname, '../..');
const pnpm = ['npm', 'exec', '--yes', '--package=pnpm@12.21.0', '--', 'pnpm'];
const packed = 'rivulet-0.1.0.tgz';
let folder: string;

/** The answer of the project's agent, from its own server. */
async function answerOf(project: string): Promise<string> {
  const { url, stop } = await serveAsUser(project, 'node_modules/.bin/rivulet serve --store memory:');
  const response = await fetch(`${url}/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agent_name: 'hello', input: [{ parts: [{ content: 'Ada' }] }] }),
  });
  const { output } = await response.json();
  await stop();
  return output[0].parts.map(({ content }: { content: string }) => content).join('');
}

// Each installation downloads some 150 packages.
describe('a project of create-rivulet, with the packages as they are published', { timeout: 600_000 }, () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'create-rivulet-'));
    const packages = [root, join(root, 'packages/create-rivulet')];
    await run(folder, ['npm', 'pack', '--ignore-scripts', ...packages]);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Makes a project, which takes Rivulet from the packed file, because the registry may have another one. */
  const create = async (name: string, userAgent: string, ...options: string[]): Promise<string> => {
    // npm sets the variable for what it runs, so the other package manager is named behind it.
    const command = [
      'env',
      `npm_config_user_agent=${userAgent}`,
      'create-rivulet',
      name,
      '--rivulet',
      packed,
      ...options,
    ];
    await run(folder, ['npm', 'exec', '--yes', '--package=./create-rivulet-0.1.0.tgz', '--', ...command]);
    return join(folder, name);
  };

  it('installs with npm without a warning, passes its test and tsc, also with agents of the package, and answers', async () => {
    const project = await create('with-npm', 'npm/11.0.0 node/v20.19.0');
    const report = await run(project, ['npm', 'install', '--engine-strict', '--no-audit', '--no-fund']);
    expect(report).not.toMatch(/EBADENGINE|deprecated|install-scripts/);
    expect(await run(project, ['npm', 'test'])).toMatch(/Tests +1 passed \(1\)/);
    const agents = ['demo', 'echo', 'approve'].map((name) => `node_modules/rivulet/agents/${name}.ts`);
    await run(project, ['cp', ...agents, 'agents/']);
    // The agents of the package import their other files like this.
    writeFileSync(join(project, 'agents/_again.ts'), "export { default } from './hello.ts';\n");
    expect(await run(project, ['npx', 'tsc', '--noEmit'])).not.toContain('error');
    expect(await answerOf(project)).toBe('Hello, you said: Ada');
  });

  it.each([
    ['llm', []],
    ['chat-ui', ['dist/index.html']],
  ])('with the template %s installs, passes its test and tsc, and builds', async (template, built) => {
    const project = await create(template, 'npm/11.0.0 node/v20.19.0', '--template', template);
    await run(project, ['npm', 'install', '--no-audit', '--no-fund']);
    expect(await run(project, ['npm', 'test'])).toMatch(/Tests +1 passed \(1\)/);
    expect(await run(project, ['npm', 'run', 'check'])).not.toContain('error');
    if (built.length > 0) await run(project, ['npm', 'run', 'build']);
    for (const path of built) expect(existsSync(join(project, path))).toBe(true);
  });

  it('installs with pnpm, passes its test and tsc, and answers', async () => {
    const project = await create('with-pnpm', 'pnpm/12.21.0 npm/? node/v20.19.0');
    const store = { npm_config_store_dir: join(folder, 'pnpm-store') };
    expect(await run(project, [...pnpm, 'install'], store)).not.toMatch(/unsupported engine/i);
    expect(await run(project, [...pnpm, 'test'], store)).toMatch(/Tests +1 passed \(1\)/);
    expect(await run(project, [...pnpm, 'check'], store)).not.toContain('error');
    expect(await answerOf(project)).toBe('Hello, you said: Ada');
  });
});
