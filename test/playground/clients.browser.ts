import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeApiKey } from '../../src/http/auth/api-key.ts';
import { recordOf } from '../../src/http/auth/key-records.ts';
import { protocolNames } from '../../src/server/protocols.ts';
import { agent, echo } from '../support/agents.ts';
import { listen, type Served, serve } from '../support/serve.ts';
import { violationsInBoth } from './axe.ts';
import { inPlayground, looks, picture, visit } from './browser.ts';

const guide = agent('guide', () => 'Here it goes.', { metadata: { examples: ['Which river is long?'] } });
inPlayground('the clients of an agent', () => {
  let served: Served;
  beforeAll(async () => {
    served = await listen([echo, guide]);
  });
  afterAll(() => served.app.close());

  const clients = (page: Page) => page.getByRole('region', { name: 'Connect a client' });
  const copied = (page: Page): Promise<string> => page.evaluate(() => navigator.clipboard.readText());

  describe.each(looks)('on $name', (look) => {
    it('have the address of each protocol, which can be copied', async () => {
      const { page } = await visit(`${served.url}/#agent=guide`, look);
      await clients(page).getByText(`${served.url}/ai/guide`).waitFor();
      expect(await clients(page).getByRole('listitem').count()).toBe(protocolNames.length + 1);
      await clients(page).getByRole('button', { name: 'Copy the address for AG-UI' }).click();
      await clients(page).getByRole('button', { name: 'Copied: Copy the address for AG-UI' }).waitFor();
      expect(await copied(page)).toBe(`${served.url}/ag-ui/guide`);
    });

    it('have code for each protocol, which opens with the keyboard and can be copied', async () => {
      const { page } = await visit(`${served.url}/#agent=guide`, look);
      const openAi = clients(page).locator('summary').filter({ hasText: 'OpenAI' });
      await openAi.focus();
      await page.keyboard.press('Enter');
      const code = clients(page).getByRole('region', { name: 'Python, openai' });
      await code.getByText('from openai import OpenAI').waitFor();
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await clients(page).getByRole('button', { name: 'Copied: Copy the code: TypeScript, openai' }).waitFor();
      expect(await copied(page)).toContain(`new OpenAI({ baseURL: "${served.url}/v1", apiKey: "none" })`);
      await page.locator('.clients .hljs-keyword').first().waitFor();
      const [has, wide] = await page.locator('.scroller').evaluate((box) => [box.scrollWidth, box.clientWidth]);
      expect(has).toBe(wide);
      expect(await violationsInBoth(page)).toEqual([]);
      await openAi.scrollIntoViewIfNeeded();
      await picture(page, `clients-${look.width}`);
      await page.emulateMedia({ colorScheme: 'dark' });
      await picture(page, `clients-${look.width}-dark`);
      await openAi.press('Enter');
      await code.waitFor({ state: 'detached' });
    });
  });

  it('are below the beginning of the page, which a small window shows first', async () => {
    const { page } = await visit(`${served.url}/#agent=guide`, { width: 390, height: 500 });
    await clients(page).getByText('ACP').waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('link', { name: /^echo/ }).click();
    await clients(page).getByText('ACP').waitFor();
    expect(
      await page.locator('.scroller').evaluate((box) => [box.scrollHeight > box.clientHeight, box.scrollTop]),
    ).toEqual([true, 0]);
  });

  it('show a placeholder for the token of the page, and the token nowhere', async () => {
    const { key } = makeApiKey();
    const secured = await serve([echo], { auth: { keys: [recordOf(key, { principal: 'alice' })] } });
    const { page } = await visit(`${secured.url}/#agent=echo`, {}, /status of 401/);
    await page.getByLabel('Token', { exact: true }).fill(key);
    await page.getByRole('button', { name: 'Use token' }).click();
    await clients(page).locator('summary').first().waitFor();
    for (const summary of await clients(page).locator('summary').all()) await summary.click();
    await clients(page).getByText("-H 'Authorization: Bearer YOUR_TOKEN'").waitFor();
    const blocks = await clients(page).locator('.code-block').allTextContents();
    expect(blocks.filter((code) => !code.includes('YOUR_TOKEN'))).toEqual([]);
    expect(await page.content()).not.toContain(key);
  });
});
