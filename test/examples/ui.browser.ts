import type { FastifyInstance } from 'fastify';
import { createServer } from 'rivulet';
import { createServer as createVite, type ViteDevServer } from 'vite';
import { afterAll, beforeAll, expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import { echo } from '../support/agents.ts';
import { useApprovePage } from '../support/approve-page.ts';
import { browser, inBrowser } from '../support/browser.ts';

inBrowser('the chat of the examples', () => {
  let app: FastifyInstance;
  let vite: ViteDevServer;
  let base: string;

  beforeAll(async () => {
    app = await createServer({ agents: [echo, approve] });
    const target = await app.listen({ host: '127.0.0.1', port: 0 });
    process.env.RIVULET_URL = target;
    vite = await createVite({
      configFile: 'examples/ui/vite.config.ts',
      logLevel: 'error',
      server: { host: '127.0.0.1', port: 0 },
    });
    delete process.env.RIVULET_URL;
    await vite.listen();
    base = vite.resolvedUrls?.local[0] ?? '';
  }, 60_000);
  afterAll(async () => {
    await vite?.close();
    await app?.close();
  });

  it.each(['chat.html', 'react.html', 'rxjs.html'])(
    'in %s shows the answer, asks, and sends the reply',
    async (file) => {
      const page = await browser().newPage();
      const wrong: string[] = [];
      page.on('pageerror', (error) => wrong.push(error.message));
      await page.goto(`${base}${file}?agent=approve`);
      await useApprovePage(page, base);
      expect(wrong).toEqual([]);
      await page.close();
    },
  );

  it.each(['chat.html', 'react.html', 'rxjs.html'])('in %s shows the server’s error', async (file) => {
    const page = await browser().newPage();
    await page.goto(`${base}${file}?agent=missing-agent`);
    await page.locator('input').fill('hi');
    await page.locator('input').press('Enter');
    await page.getByText('There is no agent missing-agent').waitFor();
    await page.close();
  });
});
