import type { Page } from 'playwright-core';
import { expect, it, onTestFinished } from 'vitest';
import { echo, Tap, tokens } from '../support/agents.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { serve } from '../support/serve.ts';
import { enter, inPlayground, picture, say, shows, visit } from './browser.ts';

const words = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, at) => `word${from + at} `);
const answer = (page: Page): Promise<string | null> => page.locator('.prose').textContent();

/** A page that follows a run in progress, which the test drives. */
async function openMidRun() {
  const tap = new Tap();
  const { url } = await serve([tap.agent], { retry: 20 });
  const line = await CuttingProxy.open(url, []);
  onTestFinished(() => line.close());
  const visited = await visit(line.url, {}, /net::ERR_/);
  await say(visited.page, 'tap', 'Go');
  await tap.started();
  for (const word of words(0, 50)) tap.push(word);
  await shows(visited.page, /word49/);
  const finish = async (pages: readonly Page[]): Promise<void> => {
    for (const word of words(50, 100)) tap.push(word);
    tap.complete();
    for (const page of pages) {
      await page.locator('.turn .badge', { hasText: 'completed' }).waitFor();
      // No missing or duplicate tokens.
      expect(await answer(page)).toBe(words(0, 100).join(''));
    }
  };
  return { tap, line, finish, ...visited };
}

inPlayground('a stream', () => {
  it('continues after a reload of the page', async () => {
    const { page, finish, tap } = await openMidRun();
    await page.reload();
    await shows(page, /word49/);
    await page.locator('.said', { hasText: 'Go' }).waitFor();
    await finish([page]);
    expect(tap.subscriptions).toBe(1);
  });

  it('is shown in two tabs at the same time', async () => {
    const { page, context, finish } = await openMidRun();
    const second = await context.newPage();
    await second.goto(page.url());
    await shows(second, /word49/);
    await finish([page, second]);
  });

  it('shows messages that another tab sends in the same session', async () => {
    const { url } = await serve([echo]);
    const { page, context } = await visit(url);
    await say(page, 'echo', 'From here');
    await page.locator('.prose', { hasText: 'From here' }).waitFor();
    const second = await context.newPage();
    await second.goto(page.url());
    const box = second.getByRole('textbox', { name: 'Message to echo' });
    await enter(box, 'From there');
    await page.locator('.prose', { hasText: 'From there' }).waitFor();
  });

  it('resumes when the network is back, and the page shows that it was lost', async () => {
    const { page, line, finish } = await openMidRun();
    line.break();
    await page.getByRole('alert').getByText('Connection lost.').waitFor();
    await picture(page, 'offline');
    line.mend();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await finish([page]);
  });

  it.each(['online', 'pageshow', 'visibilitychange'])(
    'goes on soon after the event %s, where the connection is dead without an error',
    async (event) => {
      const { page, line, tap } = await openMidRun();
      line.freeze();
      tap.push('after ');
      const at = performance.now();
      await page.evaluate((name) => {
        // A page that becomes visible gets the event at its document, and it bubbles.
        const target = name === 'visibilitychange' ? document : window;
        target.dispatchEvent(Object.assign(new Event(name, { bubbles: true }), { persisted: true }));
      }, event);
      await shows(page, /after/);
      // Without the event, it takes 45 seconds.
      expect(performance.now() - at).toBeLessThan(20_000);
    },
  );

  it('survives connections that are cut anywhere', async () => {
    const { url } = await serve([tokens], { retry: 1 });
    const { page: warm } = await visit(url);
    await say(warm, 'tokens', '3000');
    await warm.locator('.turn .badge', { hasText: 'completed' }).waitFor();
    const whole = await answer(warm);
    const hash = new URL(warm.url()).hash;
    // The first connections load the page; each later one is cut in the middle of the stream.
    const cuts = Array.from({ length: 12 }, (_, at) => (at < 6 ? Number.POSITIVE_INFINITY : 20_000));
    const proxy = await CuttingProxy.open(url, cuts);
    onTestFinished(() => proxy.close());
    const { page } = await visit(`${proxy.url}/`, {}, /ERR_/);
    await page.goto(`${proxy.url}/${hash}`);
    await page.locator('.turn .badge', { hasText: 'completed' }).waitFor();
    expect(await answer(page)).toBe(whole);
  });

  it('of twenty thousand tokens keeps the page responsive and small', async () => {
    const { url } = await serve([tokens]);
    const { page } = await visit(url);
    await say(page, 'tokens', '20000');
    await page.locator('.inspector .badge', { hasText: 'completed' }).waitFor();
    await shows(page, /t19999/);
    expect(await page.locator('.events li').count()).toBeLessThanOrEqual(150);
    await page.getByText('20,000', { exact: true }).waitFor();
    // The page responds to typing and clicks.
    await page.getByRole('textbox', { name: 'Message to tokens' }).fill('quick');
    await page.getByRole('button', { name: /^Older/ }).click();
    await page.getByRole('button', { name: 'Newest' }).click();
    await picture(page, 'long');
  });
});
