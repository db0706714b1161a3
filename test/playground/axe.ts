import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type axe from 'axe-core';
import type { Page } from 'playwright-core';

declare global {
  interface Window {
    axe: typeof axe;
  }
}

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The serious violations that axe-core finds. */
export async function violationsOn(page: Page, rules?: string[]): Promise<string[]> {
  await page.evaluate(source);
  const { violations } = await page.evaluate(
    (only) => window.axe.run({ preload: false, resultTypes: ['violations'], ...(only && { runOnly: only }) }),
    rules,
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** The serious violations in light and in dark colours. The dark page differs only in its colours. */
export async function violationsInBoth(page: Page): Promise<string[]> {
  const light = await violationsOn(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await violationsOn(page, ['color-contrast']);
  await page.emulateMedia({ colorScheme: 'light' });
  return [...light, ...dark];
}
