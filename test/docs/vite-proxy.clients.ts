import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { createServer as createVite, loadConfigFromFile } from 'vite';
import { expect, it, onTestFinished } from 'vitest';
import { templates } from '../../packages/create-rivulet/src/templates.ts';
import { answering } from '../support/answering.ts';
import { blocks, readPage, root } from './blocks.ts';

const documented = blocks.find(({ page, marks }) => page === 'docs/ui.md' && marks.get('file') === 'vite.config.ts');

/** A server of an event stream that breaks off in mid-answer, as one that crashes. */
const breakingServer = (): Promise<string> =>
  answering((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: 1\n\n');
    setImmediate(() => response.destroy());
  });

it.each([
  ['the docs', documented?.text ?? ''],
  ['the examples', readPage('examples/ui/vite.config.ts')],
  ['create-rivulet', templates['chat-ui'].files['page/vite.config.ts'] ?? ''],
])('the Vite configuration of %s breaks off the stream of a server that crashes', async (_, config) => {
  const target = await breakingServer();
  // Within the project, where `vite` is found.
  const folder = mkdtempSync(join(root, 'node_modules/.vite-proxy-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'vite.config.ts');
  writeFileSync(path, config.replace('http://127.0.0.1:8000', target));
  const loaded = await loadConfigFromFile({ command: 'serve', mode: 'development' }, path);
  const vite = await createVite({
    configFile: false,
    root: folder,
    logLevel: 'silent',
    server: { host: '127.0.0.1', port: 0, proxy: loaded?.config.server?.proxy },
  });
  onTestFinished(() => vite.close());
  await vite.listen();
  // The `fetch` of Node 20 would take what came for the whole answer.
  const [answer]: IncomingMessage[] = await once(get(`${vite.resolvedUrls?.local[0]}runs`), 'response');
  answer?.resume();
  await new Promise((resolve) => answer?.on('error', () => {}).on('close', resolve));
  expect(answer?.complete).toBe(false);
});
