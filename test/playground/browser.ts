import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { BrowserContext, Locator, Page } from 'playwright-core';
import { build } from 'vite';
import { beforeAll, expect, onTestFinished } from 'vitest';
import { inBrowser, newContext, pageTimeout } from '../support/browser.ts';

const root = resolve(import.meta.dirname, '../..');
/** For what a slow machine takes longer to show. */
export const soon = { timeout: pageTimeout };

const screenshots = join(import.meta.dirname, 'screenshots');

export interface Look {
  readonly width?: number;
  readonly height?: number;
}

/** The windows in which a page is tested. */
export const looks = [
  { name: 'a desktop', width: 1440, height: 900 },
  { name: 'a phone', width: 390, height: 844 },
];

export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
}

/** Tests of the built page; builds it if needed, for a test file that is run by itself. */
export function inPlayground(name: string, tests: () => void): void {
  inBrowser(name, () => {
    beforeAll(async () => {
      if (!existsSync(join(root, 'dist/playground/index.html'))) await build({ root, logLevel: 'error' });
    });
    tests();
  });
}

/** Opens the page with empty storage. An error that the page logs fails the test, unless it is `expected`. */
export async function visit(url: string, { width = 1360, height = 860 }: Look = {}, expected?: RegExp): Promise<Visit> {
  const context = await newContext({
    viewport: { width, height },
    colorScheme: 'light',
    // Animations are repainted all the time, which is expensive without a graphics card.
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  const errors: string[] = [];
  const report = (text: string): void => {
    if (!expected?.test(text)) errors.push(text);
  };
  context.on('page', (page) => {
    page.on('console', (message) => message.type() === 'error' && report(message.text()));
    page.on('pageerror', (error) => report(String(error)));
    page.on('request', (request) => {
      if (!request.url().startsWith(new URL(url).origin) && !/^(data|blob):/.test(request.url()))
        report(`asked for ${request.url()}`);
    });
  });
  onTestFinished(async () => {
    await context.close();
    expect(errors).toEqual([]);
  });
  const page = await context.newPage();
  await page.goto(url);
  return { page, context };
}

/** Saves a screenshot for people, if SCREENSHOTS is set; screenshots are not compared. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env.SCREENSHOTS !== undefined) await page.screenshot({ path: join(screenshots, `${name}.png`) });
}

/** Fills a box, and presses Enter in it. */
export async function enter(box: Locator, text: string): Promise<void> {
  await box.fill(text);
  await box.press('Enter');
}

/** Selects an agent and sends it a message. */
export async function say(page: Page, agent: string, text: string): Promise<void> {
  await page.getByRole('link', { name: new RegExp(`^${agent}\\b`) }).click();
  const box = page.getByRole('textbox', { name: `Message to ${agent}` });
  await enter(box, text);
}

/** Resolves when the page shows the text. */
export const shows = (page: Page, text: string | RegExp): Promise<void> =>
  page.locator('main').getByText(text).first().waitFor();
