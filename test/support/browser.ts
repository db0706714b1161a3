import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Why there is no browser to test with, or undefined where there is one. */
export const noBrowser = existsSync(executablePath)
  ? undefined
  : `there is no ${executablePath}; apt-get install chromium, or name another one with CHROMIUM`;

const args = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const openBrowser = (): Promise<Browser> => chromium.launch({ executablePath, args });
