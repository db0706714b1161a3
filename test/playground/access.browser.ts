import { expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import echo from '../../agents/echo.ts';
import { serve } from '../support/serve.ts';
import { order, showcase } from './agents.ts';
import { violationsOn } from './axe.ts';
import { inPlayground, picture, say, shows, visit } from './browser.ts';

inPlayground('the page', () => {
  it('is accessible in every view, in light and dark colours', async () => {
    const { url } = await serve([echo, approve, order, showcase]);
    const { page } = await visit(url);
    const found: string[] = [];
    const look = async (name: string): Promise<void> => {
      await picture(page, name);
      found.push(...(await violationsOn(page)));
      // The dark page differs only in its colours.
      await page.emulateMedia({ colorScheme: 'dark' });
      await picture(page, `${name}-dark`);
      found.push(...(await violationsOn(page, ['color-contrast'])));
      await page.emulateMedia({ colorScheme: 'light' });
    };
    await page.getByRole('link', { name: /^echo/ }).waitFor();
    await look('welcome');
    await say(page, 'order', 'Hello');
    await page.getByLabel('Amount').waitFor();
    await look('question');
    await say(page, 'showcase', 'Hello');
    await page.locator('.inspector .badge', { hasText: 'completed' }).waitFor();
    await page.locator('summary.step', { hasText: 'Looked it up.' }).click();
    await look('answer');
    await page.getByRole('tab', { name: 'Requests' }).click();
    await look('requests');
    await page.getByRole('link', { name: 'Runs', exact: true }).click();
    await page.getByRole('row').nth(1).waitFor();
    await look('runs');
    expect(found).toEqual([]);
  });

  it('fits a phone', async () => {
    const { url } = await serve([echo, approve, order, showcase]);
    const { page } = await visit(url, { width: 390, height: 800 });
    const fits = async (name: string): Promise<void> => {
      await picture(page, `phone-${name}`);
      const [has, wide] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      expect(has, name).toBe(wide);
      expect(await violationsOn(page), name).toEqual([]);
    };
    const view = (name: string) => page.getByRole('link', { name, exact: true }).click();
    await view('Agents');
    await page.getByRole('link', { name: /^showcase/ }).waitFor();
    await fits('agents');
    await say(page, 'showcase', 'Show me');
    await shows(page, 'Looked it up.');
    await fits('chat');
    await view('Inspector');
    await page.getByRole('tabpanel').getByText('run.completed').waitFor();
    await fits('inspector');
    await view('Runs');
    await page.getByRole('row').nth(1).waitFor();
    await fits('runs');
    await view('Agents');
    await say(page, 'order', 'Hello');
    await page.getByLabel('Amount').waitFor();
    await fits('form');
  });

  it('can be used with the keyboard alone', async () => {
    const { url } = await serve([approve]);
    const { page } = await visit(url);
    await page.getByRole('link', { name: /^approve/ }).waitFor();
    /** Presses the key until the focused control has that name: boxes that scroll, and the body, have all texts in them. */
    const tabTo = async (name: RegExp, key = 'Tab'): Promise<void> => {
      for (let stops = 0; stops < 100; stops += 1) {
        await page.keyboard.press(key);
        const focused = await page.evaluate(() => {
          const { activeElement: one } = document;
          if (one?.matches('a, button, input, summary, textarea') !== true) return '';
          const labels =
            one instanceof HTMLTextAreaElement ? [...(one.labels ?? [])].map((label) => label.textContent) : [];
          return [one.getAttribute('aria-label'), ...labels, one.textContent].join(' ');
        });
        if (name.test(focused)) return;
      }
      throw new Error(`${key} does not reach ${name}`);
    };
    await page.keyboard.press('Tab');
    await page.getByRole('button', { name: 'Skip to the content' }).waitFor();
    await tabTo(/approve.*Asks/);
    await page.keyboard.press('Enter');
    await page.getByRole('textbox', { name: 'Message to approve' }).waitFor();
    await tabTo(/Message to approve/);
    await page.keyboard.type('Open the sluice');
    await page.keyboard.press('Enter');
    // The focus is in the composer, which is the box for the answer now.
    await page.getByRole('textbox', { name: 'Your answer' }).and(page.locator(':focus')).waitFor();
    await page.keyboard.type('yes');
    await page.keyboard.press('Enter');
    await shows(page, 'Done: Open the sluice');
    await tabTo(/^ ?Events/);
    await page.keyboard.press('ArrowRight');
    await page.getByRole('tab', { name: 'Models', selected: true }).waitFor();
    await picture(page, 'keyboard');
  });
});
