import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { createServer, file, json } from 'rivulet';
import { createServer as createVite, loadConfigFromFile, type ViteDevServer } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import { agent, echo } from '../support/agents.ts';
import { useApprovePage } from '../support/approve-page.ts';
import { inBrowser, newPage } from '../support/browser.ts';
import { blocks, root } from './blocks.ts';
import { type CodeProject, docsProject } from './project.ts';

const ofPage = blocks.filter(({ page }) => page === 'docs/ui.md');
const blockOf = (language: string, file?: string): string =>
  ofPage.find((block) => block.language === language && block.marks.get('file') === file)?.text ?? '';

/** The page around the chat of docs/ai-sdk.md. */
const aiSdkPage = `
  import { createElement } from 'react';
  import { createRoot } from 'react-dom/client';
  import { Chat, load } from '../docs-ai-sdk-md/chat.tsx';
  const id = new URLSearchParams(location.search).get('id');
  const before = await load(id);
  createRoot(document.body.appendChild(document.createElement('div'))).render(createElement(Chat, { id, before }));
`;

/** What the composable needs of Vue, for a page in which nothing changes but the run: Vue itself is not installed. */
const vue = `
  export const shallowRef = (value) => ({ value });
  export const watchEffect = (effect) => effect(() => {});
  export const onScopeDispose = () => {};
`;

const vuePage = `
  import { createClient } from 'rivulet/client';
  import { useRun } from './use-run-vue.ts';
  const client = createClient({ url: '/' });
  const { run_id } = await client.start('echo', 'Hello from Vue');
  const { run } = useRun(client, { value: run_id });
  const show = () => {
    document.body.textContent = run.value?.output.map(({ parts }) => parts[0].content).join('') ?? '';
    requestAnimationFrame(show);
  };
  show();
`;

const packages = ['react', 'react-dom/client', 'react/jsx-dev-runtime', 'rxjs', 'ai', '@ai-sdk/react'];

const reporting = agent('reporting', () => [
  'The report. ',
  file('report.csv', 'month,sales'),
  json({ sales: 1 }),
  'That is all.',
]);

inBrowser('the UIs of docs/ui.md', () => {
  let project: CodeProject;
  let app: FastifyInstance;
  let vite: ViteDevServer;
  let base: string;

  beforeAll(async () => {
    project = docsProject('http://127.0.0.1:8000');
    const folder = join(project.folder, 'docs-ui-md');
    writeFileSync(join(folder, 'plain.html'), blockOf('html'));
    writeFileSync(join(folder, 'react.html'), '<body><script type="module" src="./chat.tsx"></script></body>');
    writeFileSync(join(folder, 'vue.js'), vue);
    writeFileSync(join(folder, 'use-run-vue.ts'), blockOf('ts', 'use-run-vue.ts'));
    writeFileSync(join(folder, 'vue-page.ts'), vuePage);
    writeFileSync(join(folder, 'vue.html'), '<body><script type="module" src="./vue-page.ts"></script></body>');
    writeFileSync(join(folder, 'ai-sdk-page.ts'), aiSdkPage);
    writeFileSync(join(folder, 'ai-sdk.html'), '<body><script type="module" src="./ai-sdk-page.ts"></script></body>');
    app = await createServer({ agents: [echo, approve, reporting], playground: false });
    const target = await app.listen({ host: '127.0.0.1', port: 0 });
    // The configuration of the page, for the server of this test.
    const config = join(folder, 'forwarding.config.ts');
    writeFileSync(config, blockOf('ts', 'vite.config.ts').replace('http://127.0.0.1:8000', target));
    const documented = await loadConfigFromFile({ command: 'serve', mode: 'development' }, config);
    vite = await createVite({
      configFile: false,
      root: folder,
      logLevel: 'error',
      oxc: { jsx: { runtime: 'automatic', importSource: 'react' } },
      optimizeDeps: { noDiscovery: true, include: packages },
      resolve: {
        alias: {
          'rivulet/client/ai-sdk': join(root, 'src/client/ai-sdk.ts'),
          'rivulet/client': join(root, 'src/client/client.ts'),
          'rivulet/react': join(root, 'src/react/use-run.ts'),
          vue: join(folder, 'vue.js'),
        },
      },
      server: { host: '127.0.0.1', port: 0, fs: { strict: false }, proxy: documented?.config.server?.proxy },
    });
    await vite.listen();
    base = vite.resolvedUrls?.local[0] ?? '';
  });
  afterAll(async () => {
    await vite?.close();
    await app?.close();
    project?.remove();
  });

  /** What the page says in the end, given what a person types. */
  async function open(path: string) {
    const page = await newPage();
    const wrong: string[] = [];
    page.on('pageerror', (error) => wrong.push(error.message));
    await page.goto(`${base}${path}`);
    return { page, wrong };
  }

  it('React: shows the answer, asks, and sends the reply', async () => {
    const { page, wrong } = await open('react.html?agent=approve');
    await useApprovePage(page, base);
    expect(wrong).toEqual([]);
    await page.close();
  });

  it('React: shows why the server refused a run', async () => {
    const { page, wrong } = await open('react.html?agent=missing');
    await page.locator('input').fill('Hello');
    await page.locator('input').press('Enter');
    await page.getByRole('alert').getByText('There is no agent missing').waitFor();
    expect(wrong).toEqual([]);
    await page.close();
  });

  it.each(['react.html', 'plain.html'])('%s: shows the text of an answer without its files and data', async (path) => {
    const { page, wrong } = await open(`${path}?agent=reporting`);
    await page.locator('input').fill('Hello');
    await page.locator('input').press('Enter');
    await page.getByText('The report. That is all.', { exact: true }).waitFor();
    expect(wrong).toEqual([]);
    await page.close();
  });

  it('Vue: the composable follows a run', async () => {
    const { page, wrong } = await open('vue.html');
    await page.getByText('Hello from Vue').waitFor();
    expect(wrong).toEqual([]);
    await page.close();
  });

  it('the AI SDK: the chat of docs/ai-sdk.md shows the answer behind the proxy, and again after a reload', async () => {
    const { page, wrong } = await open(`ai-sdk.html?id=${randomUUID()}`);
    const answer = page.getByRole('main').getByText('I am about to do this: Hello');
    await page.getByRole('button', { name: 'Say hello' }).click();
    await answer.waitFor();
    await page.reload();
    await answer.waitFor();
    expect(wrong).toEqual([]);
    await page.close();
  });

  it('no library: shows the answer', async () => {
    const { page, wrong } = await open('plain.html');
    await page.locator('input').fill('Hello from a form');
    await page.locator('input').press('Enter');
    await page.getByText('Hello from a form').waitFor();
    expect(wrong).toEqual([]);
    await page.close();
  });
});

describe('the picture of the playground', () => {
  it('is a PNG of less than 150 kB', () => {
    const picture = readFileSync(join(root, 'docs/images/playground.png'));
    expect(picture.subarray(1, 4).toString()).toBe('PNG');
    expect(picture.length).toBeLessThan(150_000);
  });
});
