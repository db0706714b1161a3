import type { Page } from 'playwright-core';
import { expect, it, onTestFinished } from 'vitest';
import { makeApiKey } from '../../../src/http/auth/api-key.ts';
import { recordOf } from '../../../src/http/auth/key-records.ts';
import { Tap } from '../../support/agents.ts';
import { inBrowser, newContext } from '../../support/browser.ts';
import { ask, serve } from '../../support/serve.ts';

const { key } = makeApiKey();
const headers = { authorization: `Bearer ${key}` };

/** A run that the test drives, and a page of the same origin with a function that opens a native EventSource. */
async function openPage() {
  const tap = new Tap();
  const auth = { keys: [recordOf(key, { principal: 'alice' })] };
  const served = await serve([tap.agent], { auth, retry: 20, docs: false, playground: false });
  const { run_id } = await (await served.post('/runs', ask('tap', 'go', { mode: 'async' }), headers)).json();
  await tap.started();
  const context = await newContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  // Browsers accept Secure cookies of localhost without TLS.
  const base = served.url.replace('127.0.0.1', 'localhost');
  await page.route(`${base}/page`, (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html>' }));
  await page.goto(`${base}/page`);
  return { tap, served, run_id, page, context, base };
}

/** Asks for a ticket, as a page does that has the key. */
const ticketFor = (page: Page, run_id: string, query = ''): Promise<string> =>
  page.evaluate(
    async ([path, authorization]) => {
      const response = await fetch(path, { method: 'POST', headers: { authorization } });
      return (await response.json()).url;
    },
    [`/runs/${run_id}/stream-ticket${query}`, headers.authorization] as const,
  );

/** Opens an EventSource; the page keeps the text that arrives, and the state after the last error. */
const open = (page: Page, url: string): Promise<void> =>
  page.evaluate((address) => {
    const seen = { text: '', errors: 0, state: -1 };
    Object.assign(globalThis, { seen });
    const source = new EventSource(address);
    source.onmessage = ({ data }) => {
      const { type, part } = JSON.parse(data);
      if (type === 'message.part') seen.text += part.content;
    };
    source.onerror = () => {
      seen.errors += 1;
      seen.state = source.readyState;
    };
  }, url);

const seenBy = (page: Page): Promise<{ text: string; errors: number; state: number }> =>
  page.evaluate(() => Object(globalThis).seen);

const textOf = (page: Page) => expect.poll(async () => (await seenBy(page)).text);
const errorsOf = (page: Page) => expect.poll(async () => (await seenBy(page)).errors);

inBrowser('a native EventSource', () => {
  it('follows a run with a ticket, over a broken connection', async () => {
    const { tap, served, run_id, page } = await openPage();
    await open(page, await ticketFor(page, run_id));
    tap.push('one ');
    await textOf(page).toBe('one ');
    served.app.server.closeAllConnections();
    await errorsOf(page).toBe(1);
    tap.push('two ');
    await textOf(page).toBe('one two ');
  });

  it('ends with an error where the ticket in its address is refused', async () => {
    const { run_id, page } = await openPage();
    const url = await ticketFor(page, run_id);
    await open(page, `${url.slice(0, -1)}`);
    await errorsOf(page).toBe(1);
    expect((await seenBy(page)).state).toBe(2);
  });

  it('follows a run with a cookie that no script can read', async () => {
    const { tap, run_id, page } = await openPage();
    const url = await ticketFor(page, run_id, '?cookie=true');
    expect(url).toBe(`/runs/${run_id}/events`);
    expect(await page.evaluate(() => document.cookie)).toBe('');
    await open(page, url);
    tap.push('one ');
    await textOf(page).toBe('one ');
  });

  it('reconnects while its cookie is refused, and goes on with a new one', async () => {
    const { tap, run_id, page, context, base } = await openPage();
    const path = `/runs/${run_id}/events`;
    const { hostname } = new URL(base);
    await context.addCookies([{ name: 'rivulet_ticket', value: 'rvs_old', domain: hostname, path, secure: true }]);
    await open(page, path);
    await errorsOf(page).toBeGreaterThan(1);
    expect((await seenBy(page)).state).toBe(0);
    await ticketFor(page, run_id, '?cookie=true');
    tap.push('one ');
    await textOf(page).toBe('one ');
  });
});
