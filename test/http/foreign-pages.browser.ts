import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Page } from 'playwright-core';
import { createServer } from 'rivulet';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { echo, never } from '../support/agents.ts';
import { inBrowser, newPage } from '../support/browser.ts';
import { ask } from '../support/serve.ts';

inBrowser('a page in a browser', () => {
  let app: FastifyInstance;
  let port: number;
  const elsewhere = createHttpServer((_, response) => response.end('<!doctype html><title>elsewhere</title>'));

  beforeAll(async () => {
    app = await createServer({ agents: [never, echo], limits: { shutdownGrace: 0 } });
    await app.listen({ host: '127.0.0.1', port: 0 });
    port = Number(new URL(app.listeningOrigin).port);
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
  });
  afterAll(async () => {
    elsewhere.close();
    await app?.close();
  });

  const begin = async (): Promise<string> => {
    const made = await app.inject({ method: 'POST', url: '/runs', payload: ask('never', 'a', { mode: 'async' }) });
    return made.json().run_id;
  };
  const statusOf = async (run_id: string): Promise<string> => (await app.inject(`/runs/${run_id}`)).json().status;
  const statusIn = (
    page: Page,
    path: string,
    init: { method?: string; headers?: Record<string, string>; body?: string },
  ): Promise<number> =>
    page.evaluate(async ([url, options]) => (await fetch(url, options)).status, [path, init] as const);

  it('whose name resolves to this machine can read and do nothing', async () => {
    const run_id = await begin();
    const page = await newPage();
    // Chromium resolves every name under localhost to 127.0.0.1, as an attacker's name server would.
    const base = `http://evil.localhost:${port}`;
    await page.route(`${base}/page`, (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html>' }));
    await page.goto(`${base}/page`);
    const json = { 'content-type': 'application/json' };
    expect(await statusIn(page, '/runs', {})).toBe(421);
    expect(await statusIn(page, `/runs/${run_id}/events`, { headers: { accept: 'text/event-stream' } })).toBe(421);
    expect(await statusIn(page, '/runs', { method: 'POST', headers: json, body: '{}' })).toBe(421);
    expect(await statusIn(page, `/runs/${run_id}/cancel`, { method: 'POST' })).toBe(421);
    expect(await statusOf(run_id)).toBe('in-progress');
    await page.close();
  });

  it('of another origin cancels no run, and frames nothing', async () => {
    const run_id = await begin();
    const page = await newPage();
    await page.goto(`http://localhost:${(elsewhere.address() as AddressInfo).port}/`);
    const target = `http://127.0.0.1:${port}`;
    const asked = once(app.server, 'request');
    const answer = await page.evaluate(
      (url) =>
        fetch(url, { method: 'POST', mode: 'no-cors' }).then(
          () => 'answered',
          () => 'blocked',
        ),
      `${target}/runs/${run_id}/cancel`,
    );
    // The request arrived, and the page does not learn that it was refused.
    const [{ headers }] = await asked;
    expect([headers.origin, answer]).toEqual([new URL(page.url()).origin, 'blocked']);
    expect(await statusOf(run_id)).toBe('in-progress');
    for (const path of ['/docs', '/']) {
      const refused = page.waitForEvent('console', (message) => message.text().includes('frame-ancestors'));
      await page.evaluate((url) => {
        const frame = document.createElement('iframe');
        frame.src = url;
        document.body.append(frame);
      }, `${target}${path}`);
      await refused;
    }
    await page.close();
  });

  it('of the documentation shows and makes calls, and loads nothing from other servers', {
    timeout: 240_000,
  }, async () => {
    const page = await newPage();
    const wrong: string[] = [];
    const hosts = new Set<string>();
    page.on('pageerror', (error) => wrong.push(error.message));
    page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
    page.on('request', (request) => hosts.add(new URL(request.url()).host));
    for (const path of ['/docs', '/docs/']) {
      await page.goto(`http://127.0.0.1:${port}${path}`);
      await page.getByRole('heading', { name: 'Rivulet' }).waitFor();
    }
    await page.getByRole('button', { name: /^Cancel a run/ }).waitFor();
    await page.getByRole('button', { name: /^Run an agent/ }).click();
    await page.getByRole('button', { name: 'Test Request (post /runs)' }).click();
    const answer = page.waitForResponse((response) => response.request().method() === 'POST');
    await page.getByRole('button', { name: /^Send post request/ }).click();
    expect((await (await answer).json()).status).toBe('completed');
    expect(wrong).toEqual([]);
    expect([...hosts]).toEqual([`127.0.0.1:${port}`]);
    await page.close();
  });
});
