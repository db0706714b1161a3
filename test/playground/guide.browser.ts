import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { echo } from '../support/agents.ts';
import { deferred } from '../support/deferred.ts';
import { listen, type Served } from '../support/serve.ts';
import { violationsInBoth } from './axe.ts';
import { inPlayground, looks, picture, soon, visit } from './browser.ts';

inPlayground('the guide', () => {
  let served: Served;
  beforeAll(async () => {
    served = await listen([echo]);
  });
  afterAll(() => served.app.close());
  const open = async (name: string, look = looks[0]): Promise<Page> =>
    (await visit(`${served.url}/docs/guide${name}`, look)).page;
  const boxOf = (page: Page) => page.getByRole('searchbox', { name: 'Search the guide' });
  const resultsOf = (page: Page) => page.getByRole('list', { name: 'Results' }).getByRole('link');
  const focused = (page: Page) => page.evaluate(() => document.activeElement?.textContent ?? '');

  describe.each(looks)('on $name', (look) => {
    /** In both colours: nothing is cut at the side, and axe-core finds nothing. */
    const looksGood = async (page: Page, name: string): Promise<void> => {
      const [has, wide] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      expect(has, name).toBe(wide);
      expect(await violationsInBoth(page), name).toEqual([]);
      await picture(page, `${name}-${look.width}`);
      await page.emulateMedia({ colorScheme: 'dark' });
      await picture(page, `${name}-dark-${look.width}`);
      await page.emulateMedia({ colorScheme: 'light' });
    };

    it('shows each page without a script error, a cut side or a violation', async () => {
      for (const name of ['', '/approvals', '/configuration', '/playground']) {
        const page = await open(name, look);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await looksGood(page, `guide${name.replace('/', '-')}`);
        await page.context().close();
      }
    });

    it('lists the sections that have the words, and opens one', async () => {
      const page = await open('', look);
      await boxOf(page).fill('run again event');
      await expect.poll(() => resultsOf(page).first().textContent(), soon).toContain('Run again from an event');
      expect(await page.getByRole('status').textContent()).toMatch(/^Best matches: \d+$/);
      expect(await resultsOf(page).first().locator('mark').allTextContents()).toContain('again');
      await looksGood(page, 'guide-search');
      await resultsOf(page).first().click();
      await page.waitForURL('**/docs/guide/rest-api#run-again-from-an-event');
      await expect.poll(() => page.title(), soon).toBe('The REST API · Rivulet guide');
      const heading = page.getByRole('heading', { name: 'Run again from an event' });
      await expect.poll(() => heading.evaluate((one) => one.getBoundingClientRect().top), soon).toBeLessThan(150);
      // It is not below the bar at the top.
      expect(await heading.evaluate((one) => one.getBoundingClientRect().top)).toBeGreaterThan(50);
    });

    it('does not move its text while it is loaded or searched', async () => {
      const page = await open('/playground', look);
      await page.addInitScript(() => {
        const shifts: string[] = [];
        Object.assign(window, { shifts });
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) {
            const { sources } = entry as PerformanceEntry & {
              readonly sources?: readonly { readonly node?: Element }[];
            };
            shifts.push((sources ?? []).map(({ node }) => node?.id || node?.nodeName).join(' '));
          }
        }).observe({ type: 'layout-shift' });
      });
      // The picture comes after the text is shown, as on a slow line.
      const { promise: shown, resolve: isShown } = deferred();
      await page.route('**/*.png', (route) => shown.then(() => route.continue()));
      await page.reload({ waitUntil: 'domcontentloaded' });
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      isShown();
      await page.getByRole('img').evaluate(async (img) => {
        if (img instanceof HTMLImageElement) await img.decode();
      });
      await boxOf(page).fill('approval');
      await resultsOf(page).first().waitFor();
      // A shift that is meant: all earlier ones are reported before it.
      await page.evaluate(() => {
        const block = document.createElement('div');
        block.id = 'meant';
        block.append('A line\n'.repeat(3));
        document.querySelector('h1')?.before(block);
      });
      const shifts = () => page.evaluate(() => 'shifts' in window && (window.shifts as string[]));
      await expect.poll(shifts, soon).not.toEqual([]);
      expect(await shifts()).toHaveLength(1);
    });
  });

  it('is searched with the keyboard: slash, arrows, Enter and Escape', async () => {
    const page = await open('/approvals');
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.keyboard.press('/');
    await expect.poll(() => boxOf(page).evaluate((box) => box === document.activeElement), soon).toBe(true);
    await page.keyboard.type('question');
    await resultsOf(page).nth(1).waitFor();
    await page.keyboard.press('ArrowDown');
    expect(await focused(page)).toBe(await resultsOf(page).first().textContent());
    await page.keyboard.press('ArrowDown');
    expect(await focused(page)).toBe(await resultsOf(page).nth(1).textContent());
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    expect(await boxOf(page).evaluate((box) => box === document.activeElement)).toBe(true);
    await page.keyboard.press('Escape');
    await resultsOf(page).first().waitFor({ state: 'hidden' });
    expect(await boxOf(page).inputValue()).toBe('question');
    await page.keyboard.press('Escape');
    expect(await boxOf(page).inputValue()).toBe('');
    await page.keyboard.type('question');
    await resultsOf(page).first().waitFor();
    const href = await resultsOf(page)
      .first()
      .evaluate((link) => (link instanceof HTMLAnchorElement ? link.href : ''));
    await page.keyboard.press('Enter');
    await page.waitForURL(href);
    await resultsOf(page).first().waitFor({ state: 'hidden' });
  });

  it('has its pages in a menu on a phone, which a link closes', async () => {
    const page = await open('/approvals', looks[1]);
    const link = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Webhooks' });
    const menu = page.getByRole('button', { name: 'Pages' });
    expect(await link.isVisible()).toBe(false);
    await menu.click();
    await link.waitFor();
    expect(await menu.getAttribute('aria-expanded')).toBe('true');
    expect(await violationsInBoth(page)).toEqual([]);
    await picture(page, 'guide-menu-390');
    await link.focus();
    await page.keyboard.press('Escape');
    await link.waitFor({ state: 'hidden' });
    await menu.click();
    await link.click();
    await page.waitForURL('**/docs/guide/webhooks');
    // The list of a long menu begins where the page is.
    await menu.click();
    await expect.poll(() => link.evaluate((one) => one.getBoundingClientRect().bottom < innerHeight), soon).toBe(true);
    await menu.click();
    expect(await link.isVisible()).toBe(false);
  });

  it('says that the search could not be loaded, and loads it at the next letter', async () => {
    const { page } = await visit(`${served.url}/docs/guide`, {}, /Failed to load resource|ERR_FAILED/);
    await page.route('**/guide-index*', (route) => route.abort());
    await boxOf(page).pressSequentially('age');
    await page.getByText('The search could not be loaded').waitFor();
    await page.unroute('**/guide-index*');
    await boxOf(page).press('n');
    await resultsOf(page).first().waitFor();
  });
});
