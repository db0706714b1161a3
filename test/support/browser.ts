import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
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
export function browser(): Browser {
  if (open === undefined) throw new Error('only tests inside inBrowser() have a browser');
  return open;
}

/** Tests with a browser. Without one they are skipped with a message; on CI they fail. */
export function inBrowser(name: string, tests: () => void): void {
  const skipped = executable === undefined && process.env.CI === undefined;
  if (skipped) console.warn(`SKIPPED: ${name}: there is no Chromium; install one, or name it in CHROMIUM.`);
  describe.skipIf(skipped)(name, { timeout: 60_000 }, () => {
    beforeAll(async () => {
      if (executable === undefined) throw new Error('There is no Chromium; install one, or name it in CHROMIUM.');
      open = await chromium.launch({ executablePath: executable, args, chromiumSandbox: false });
    }, 60_000);
    afterAll(() => open?.close());
    tests();
  });
}
