import { expect, it } from 'vitest';
import echo from '../../agents/echo.ts';
import { Tap } from '../support/agents.ts';
import { ask, serve } from '../support/serve.ts';
import { showcase } from './agents.ts';
import { inPlayground, picture, say, visit } from './browser.ts';

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
    await page.getByRole('img', { name: /^2 tokens.*; the first after / }).waitFor();
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

  it('shows the run’s JSON and each request as a curl command', async () => {
    const { url } = await serve([echo]);
    const { page } = await visit(url);
    await say(page, 'echo', "It's me");
    await page.locator('.inspector .badge', { hasText: 'completed' }).waitFor();
    await page.getByRole('tab', { name: 'Run' }).click();
    await page.getByText('"agent_name": "echo"').waitFor();
    await page.getByRole('tab', { name: 'Requests' }).click();
    await page.getByRole('button', { name: 'Copy POST /runs as curl' }).click();
    await page.getByText('Copied').waitFor();
    const line = await page.evaluate(() => navigator.clipboard.readText());
    expect(line).toContain(`curl -X POST '${url}/runs'`);
    expect(line).toContain(`"content":"It'\\''s me"`);
    await page.getByRole('button', { name: 'Copy GET /runs/' }).first().waitFor();
  });
});

inPlayground('the table of runs', () => {
  it('shows the newest runs, filters them, follows their status, and links to each', async () => {
    const tap = new Tap();
    const { url, post } = await serve([echo, tap.agent]);
    await post('/runs', ask('echo', 'One'));
    await post('/runs', ask('tap', 'Two', { mode: 'async' }));
    await tap.started();
    const { page } = await visit(`${url}/`);
    await page.getByRole('link', { name: 'Runs', exact: true }).click();
    await page.getByRole('row').filter({ hasText: 'tap' }).getByText('in-progress').waitFor();
    expect(await page.getByRole('row').count()).toBe(3);
    tap.complete();
    await page.getByRole('row').filter({ hasText: 'tap' }).getByText('completed').waitFor();
    await page.getByLabel('Agent', { exact: true }).selectOption('echo');
    await page.getByRole('row').filter({ hasText: 'tap' }).waitFor({ state: 'detached' });
    await page.getByLabel('Status', { exact: true }).selectOption('failed');
    await page.getByText('No run matches these filters.').waitFor();
    await page.getByLabel('Status', { exact: true }).selectOption('completed');
    await page.getByRole('row').filter({ hasText: 'echo' }).getByRole('link').click();
    await page.locator('.prose', { hasText: 'One' }).waitFor();
    // This browser did not say it; the session knows.
    await page.locator('.said', { hasText: 'One' }).waitFor();
  });
});
