import { expect, it } from 'vitest';
import echo from '../../agents/echo.ts';
import { trajectory } from '../../src/index.ts';
import { agent, Tap, tokens } from '../support/agents.ts';
import { ask, serve } from '../support/serve.ts';
import { showcase } from './agents.ts';
import { violationsInBoth } from './axe.ts';
import { inPlayground, picture, say, shows, soon, visit } from './browser.ts';

inPlayground('the inspector', () => {
  it('shows the events as they arrive, each with its JSON', async () => {
    const tap = new Tap();
    const { url } = await serve([tap.agent]);
    const { page } = await visit(url);
    await say(page, 'tap', 'Go');
    await tap.started();
    const log = page.getByRole('tabpanel', { name: 'Events' });
    await log.getByText('run.in-progress').waitFor();
    tap.push('first ');
    await log.getByText('first').waitFor();
    tap.push('second');
    await log.getByText('second').click();
    await log.getByText('"content": "second"').waitFor();
    tap.complete();
    await log.getByText('run.completed').waitFor();
    expect(await log.locator('.number').allTextContents()).toEqual(['1', '2', '3', '4', '5', '6', '7']);
    expect((await log.locator('.time').allTextContents()).every((time) => /^[<\d]/.test(time))).toBe(true);
    await page.getByRole('img', { name: /^2 parts.*; the first after / }).waitFor();
  });

  it('filters events, and shows generic ones', async () => {
    const { url } = await serve([showcase]);
    const { page } = await visit(url);
    await say(page, 'showcase', 'Go');
    const log = page.getByRole('tabpanel', { name: 'Events' });
    await log.getByText('run.completed').waitFor();
    await log.getByRole('button', { name: 'Generic' }).click();
    expect(await log.locator('.type').allTextContents()).toEqual(['generic']);
    await log.getByText('{"progress":0.5}').waitFor();
    await picture(page, 'inspector');
  });

  it('shows the run as a tree that opens at its top, folds, and can be copied', async () => {
    const { url } = await serve([tokens]);
    const { page } = await visit(url);
    await say(page, 'tokens', '300');
    await page.locator('.inspector .badge', { hasText: 'completed' }).waitFor();
    // The events are scrolled to their end.
    await expect.poll(() => page.locator('.panel').evaluate((box) => box.scrollTop), soon).toBeGreaterThan(0);
    await page.getByRole('tab', { name: 'Run' }).click();
    const panel = page.getByRole('tabpanel', { name: 'Run' });
    await panel.getByText('"agent_name": "tokens"').waitFor();
    expect(await panel.evaluate((box) => box.scrollTop)).toBe(0);
    await panel.getByText('"output": [ ] 1 item').click();
    await panel.getByText('"role": "agent/tokens"').waitFor({ state: 'detached' });
    await panel.getByText('"output": [ ] 1 item').click();
    await panel.getByText('{ } 4 keys').click();
    await panel.getByText('"parts": [ ] 1 item').click();
    await panel.getByText('{ } 2 keys').click();
    await panel.getByRole('button', { name: /^Show [\d,]+ more of [\d,]+ characters$/ }).click();
    await panel.getByText('t299').waitFor();
    await panel.getByRole('button', { name: 'Copy the run as JSON' }).click();
    await page.getByText('Copied').waitFor();
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    expect(copied).toMatchObject({ agent_name: 'tokens', status: 'completed' });
  });

  it('shows each request as curl, TypeScript or Python', async () => {
    const { url } = await serve([echo]);
    const { page } = await visit(url);
    await say(page, 'echo', "It's me");
    await page.locator('.inspector .badge', { hasText: 'completed' }).waitFor();
    await page.getByRole('tab', { name: 'Requests' }).click();
    const copied = async (language: string, begins: RegExp): Promise<string> => {
      await page.getByRole('button', { name: language, exact: true }).click();
      await page.getByRole('button', { name: `Copy POST /runs as ${language}` }).click();
      const text = (): Promise<string> => page.evaluate(() => navigator.clipboard.readText());
      await expect.poll(text, soon).toMatch(begins);
      return text();
    };
    const line = await copied('curl', /^curl/);
    expect(line).toContain(`curl -X POST '${url}/runs'`);
    expect(line).toContain(`"content":"It'\\''s me"`);
    expect(await copied('TypeScript', /^const/)).toContain(`await fetch("${url}/runs", {`);
    expect(await copied('Python', /^import/)).toContain('"content": "It\'s me"');
    await page.getByRole('button', { name: 'Copy GET /runs/' }).first().waitFor();
  });

  it('shows the times of events since the last, since the start, and by clock', async () => {
    const { url } = await serve([echo]);
    const { page } = await visit(url);
    await say(page, 'echo', 'Hello');
    await page.locator('.inspector .badge', { hasText: 'completed' }).waitFor();
    const times = async (): Promise<string[]> => page.locator('.events .time').allTextContents();
    await page.getByRole('button', { name: 'Since the start' }).click();
    const milliseconds = (await times()).map((time) => Number.parseFloat(time.replace('<', '')));
    expect(milliseconds).toEqual(milliseconds.toSorted((a, b) => a - b));
    await page.getByRole('button', { name: 'By clock' }).click();
    expect((await times()).every((time) => /^\d\d:\d\d:\d\d\.\d{3}$/.test(time))).toBe(true);
  });

  it.each([
    { width: 1440, height: 900 },
    { width: 390, height: 844 },
  ])('shows the timeline of a run from elsewhere, its tokens and its input, at $width pixels', async (look) => {
    const counted = agent('counted', (_, context) => {
      context.usage({ tokens: 1_234 });
      return [trajectory({ message: 'Looked it up.', tool_name: 'atlas' }), 'Done.'];
    });
    const { url, post } = await serve([counted]);
    const { run_id } = await (await post('/runs', ask('counted', 'How long is the Inn?'))).json();
    const { page } = await visit(`${url}/#run=${run_id}`, look);
    await page.locator('.said', { hasText: 'How long is the Inn?' }).waitFor();
    await shows(page, 'Done.');
    if (look.width < 1_000) await page.getByRole('navigation').getByRole('link', { name: 'Inspector' }).click();
    await page.locator('.run-figures').getByText('1,234').waitFor();
    await page.getByText("The page reads this run from the server's log.").waitFor();
    await page.getByRole('tab', { name: 'Timeline' }).click();
    // A slow machine shows the time in the queue as well.
    const labels = await page.locator('.timeline li:not([data-kind="queue"]) .label').allTextContents();
    expect(labels).toEqual(['Run counted', 'Message counted', 'Step atlas']);
    for (const tab of ['Events', 'Timeline', 'Run', 'Requests']) {
      await page.getByRole('tab', { name: tab }).click();
      expect(await violationsInBoth(page), tab).toEqual([]);
      await picture(page, `inspector-${tab}-${look.width}`);
    }
    const [has, wide] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    expect(has).toBe(wide);
  });
});
