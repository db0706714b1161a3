import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe } from 'vitest';

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

let open: Browser | undefined;

/** The browser of the running tests. */
function browser(): Browser {
  if (open === undefined) throw new Error('only tests inside inBrowser() have a browser');
  return open;
}

/** Milliseconds for what a page has to show: a slow machine needs more than Playwright's half a minute. */
export const pageTimeout = 120_000;

/** A context that the test closes. */
export async function newContext(options?: BrowserContextOptions): Promise<BrowserContext> {
  const context = await browser().newContext(options);
  context.setDefaultTimeout(pageTimeout);
  return context;
}

/** A page with a context of its own, which its close ends. */
export async function newPage(): Promise<Page> {
  const page = await browser().newPage();
  page.setDefaultTimeout(pageTimeout);
  return page;
}

/** Tests with a browser. Without one they are skipped with a message; on CI they fail. */
export function inBrowser(name: string, tests: () => void): void {
  const skipped = executable === undefined && process.env.CI === undefined;
  if (skipped) console.warn(`SKIPPED: ${name}: there is no Chromium; install one, or name it in CHROMIUM.`);
  describe.skipIf(skipped)(name, () => {
    beforeAll(async () => {
      if (executable === undefined) throw new Error('There is no Chromium; install one, or name it in CHROMIUM.');
      open = await chromium.launch({ executablePath: executable, args, chromiumSandbox: false, timeout: pageTimeout });
    });
    afterAll(() => open?.close());
    tests();
  });
}
