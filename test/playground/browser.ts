import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const screenshots = join(import.meta.dirname, 'screenshots');

/** A browser of this machine; CHROMIUM names another one. */
const executable = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
  .filter((path) => path !== undefined)
  .find((path) => existsSync(path));

const args = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export interface Look {
  readonly width?: number;
  readonly height?: number;
}

export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
}

let browser: Browser | undefined;

/** Tests that a browser takes part in. Without one they are skipped, and say so; on CI that is a failure. */
export function inBrowser(name: string, tests: () => void): void {
  if (executable === undefined && process.env.CI === undefined) {
    console.warn(`SKIPPED: ${name}: there is no Chromium; install one, or name it in CHROMIUM.`);
  }
  describe.skipIf(executable === undefined && process.env.CI === undefined)(name, () => {
    beforeAll(async () => {
      if (executable === undefined) throw new Error('There is no Chromium; install one, or name it in CHROMIUM.');
      // `npm test` has built it; who runs one file may not have.
      if (!existsSync(join(root, 'dist/playground/index.html'))) await build({ root, logLevel: 'error' });
      browser = await chromium.launch({ executablePath: executable, args, chromiumSandbox: false });
    });
    afterAll(() => browser?.close());
    tests();
  });
}

/** A visitor of their own, with no memory. What the page logs as an error fails the test, unless it is `expected`. */
export async function visit(url: string, { width = 1360, height = 860 }: Look = {}, expected?: RegExp): Promise<Visit> {
  if (browser === undefined) throw new Error('inBrowser() has not started one');
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: 'light',
    // What moves is painted anew all the time, which costs most where there is no graphics card.
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  const complaints: string[] = [];
  const complain = (text: string): void => {
    if (!expected?.test(text)) complaints.push(text);
  };
  context.on('page', (page) => {
    page.setDefaultTimeout(8_000);
    page.on('console', (message) => message.type() === 'error' && complain(message.text()));
    page.on('pageerror', (error) => complain(String(error)));
    page.on('request', (request) => {
      if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url()))
        complain(`asked for ${request.url()}`);
    });
  });
  onTestFinished(async () => {
    await context.close();
    expect(complaints).toEqual([]);
  });
  const page = await context.newPage();
  await page.goto(url);
  return { page, context };
}

/** For people to look at, where SCREENSHOTS is set; nothing is compared. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env.SCREENSHOTS !== undefined) await page.screenshot({ path: join(screenshots, `${name}.png`) });
}

/** Chooses an agent and says something to it. */
export async function say(page: Page, agent: string, text: string): Promise<void> {
  await page.getByRole('link', { name: new RegExp(`^${agent}\\b`) }).click();
  const box = page.getByRole('textbox', { name: `Message to ${agent}` });
  await box.fill(text);
  await box.press('Enter');
}

/** Resolves when the page shows the text. */
export const shows = (page: Page, text: string | RegExp): Promise<void> =>
  page.locator('main').getByText(text).first().waitFor();
