import { expect, it } from 'vitest';
import { makeApiKey } from '../../src/http/auth/api-key.ts';
import { recordOf } from '../../src/http/auth/key-records.ts';
import { echo } from '../support/agents.ts';
import { serve } from '../support/serve.ts';
import { violationsOn } from './axe.ts';
import { enter, inPlayground, picture, say, visit } from './browser.ts';

const { key } = makeApiKey();
const start = () => serve([echo], { auth: { keys: [recordOf(key, { principal: 'alice' })] } });
/** The browser logs every answer 401 as an error. */
const refused = /status of 401/;

inPlayground('the page of a server that needs a token', () => {
  it('asks for it, sends it with every request and stream, and keeps it over a reload', async () => {
    const { url } = await start();
    const { page } = await visit(url, {}, refused);
    const field = page.getByLabel('Token', { exact: true });
    await field.waitFor();
    await picture(page, 'token');
    expect(await violationsOn(page)).toEqual([]);
    await enter(field, ` ${key} `);
    await say(page, 'echo', 'Hello');
    await page.locator('.turn .badge', { hasText: 'completed' }).waitFor();
    await page.reload();
    await page.locator('.prose', { hasText: 'Hello' }).waitFor();
    expect(await field.count()).toBe(0);
  });

  it('asks again where the token is refused', async () => {
    const { url } = await start();
    const { page } = await visit(url, {}, refused);
    await page.getByLabel('Token', { exact: true }).fill(makeApiKey().key);
    await page.getByRole('button', { name: 'Use token' }).click();
    await page.getByText('The server refused the token').waitFor();
    await page.clock.install();
    const calls: string[] = [];
    page.on('request', (request) => {
      const { pathname, search } = new URL(request.url());
      if (/^\/(agents|runs)$/.test(pathname)) calls.push(pathname + search);
    });
    await page.reload();
    await page.getByText('The server refused the token').waitFor();
    await page.getByLabel('Token', { exact: true }).fill(key);
    await page.clock.runFor(60_000);
    // The page does not poll: failures of this address would count against the next token. What it asks when it is loaded
    // may be under way when the first answer is there.
    expect(calls).not.toEqual([]);
    expect(calls).toEqual([...new Set(calls)]);
    await page.getByRole('button', { name: 'Use token' }).click();
    await say(page, 'echo', 'Hello');
    await page.locator('.turn .badge', { hasText: 'completed' }).waitFor();
  });

  it('can forget it, does not share it with other tabs, and shows it nowhere', async () => {
    const { url } = await start();
    const { page, context } = await visit(url, {}, refused);
    await page.getByLabel('Token', { exact: true }).fill(key);
    await page.getByRole('button', { name: 'Use token' }).click();
    await say(page, 'echo', 'Hello');
    await page.locator('.turn .badge', { hasText: 'completed' }).waitFor();
    await page.getByRole('tab', { name: 'Requests' }).click();
    await page.locator('.inspector').getByText('POST').first().click();
    expect(await page.content()).not.toContain(key.slice(13, 30));
    const other = await context.newPage();
    await other.goto(url);
    await other.getByLabel('Token', { exact: true }).waitFor();
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(key.slice(13, 30));
    await page.getByRole('button', { name: 'Forget token' }).click();
    await page.getByLabel('Token', { exact: true }).waitFor();
    expect(await page.evaluate(() => JSON.stringify(sessionStorage))).not.toContain(key.slice(13, 30));
  });
});
