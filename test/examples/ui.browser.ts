import { afterAll, beforeAll, expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import { echo } from '../support/agents.ts';
import { useApprovePage } from '../support/approve-page.ts';
import { inBrowser, newPage } from '../support/browser.ts';
import { type ExamplePages, openPages } from './ui-server.ts';

inBrowser('the chat of the examples', () => {
  let pages: ExamplePages;

  beforeAll(async () => {
    pages = await openPages([echo, approve]);
  });
  afterAll(async () => {
    await pages?.close();
  });

  it.each(['chat.html', 'react.html', 'rxjs.html'])(
    'in %s shows the answer, asks, and sends the reply',
    async (file) => {
      const page = await newPage();
      const wrong: string[] = [];
      page.on('pageerror', (error) => wrong.push(error.message));
      await page.goto(`${pages.base}${file}?agent=approve`);
      await useApprovePage(page, pages.base);
      expect(wrong).toEqual([]);
      await page.close();
    },
  );

  it.each(['chat.html', 'react.html', 'rxjs.html'])('in %s shows the server’s error', async (file) => {
    const page = await newPage();
    await page.goto(`${pages.base}${file}?agent=missing-agent`);
    await page.locator('input').fill('hi');
    await page.locator('input').press('Enter');
    await page.getByText('There is no agent missing-agent').waitFor();
    await page.close();
  });
});
