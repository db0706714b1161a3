import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { citation, json } from '../../src/index.ts';
import { agent, echo } from '../support/agents.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { listen, type Served, serve } from '../support/serve.ts';
import { violationsInBoth } from './axe.ts';
import { enter, inPlayground, picture, say, shows, visit } from './browser.ts';

const desktop = { width: 1440, height: 900 };
const phone = { width: 390, height: 844 };
const code = 'const river: string = "Inn";';

const writer = agent('writer', () => [
  `Look:\n\n\`\`\`ts\n${code}\n\`\`\`\n\nIt rises at Maloja.`,
  citation({ start_index: 0, end_index: 5, title: 'A book', url: 'https://example.com/book' }),
  citation({ title: 'A talk' }),
  json({ river: { name: 'Inn', towns: ['Chur', 'Passau'] }, long: true }),
]);

const guide = agent('guide', (input) => `Got ${input[0]?.parts[0]?.content}`, {
  metadata: {
    documentation: 'Set `RIVERS_URL` first.',
    examples: ['Show me a river', { title: 'A long text', prompt: 'The prompt of the long text' }],
  },
});

/** As a model in a step says something else after a crash. */
const restarted = agent('restarted', () => [
  'The cat ',
  { role: 'agent', parts: [], finish_reason: 'interrupted' as const },
  'The dog ran.',
]);

const copied = (page: Page): Promise<string> => page.evaluate(() => navigator.clipboard.readText());
const messages = (page: Page) => page.locator('.said').allInnerTexts();

inPlayground('a message', () => {
  let served: Served;
  beforeAll(async () => {
    served = await listen([echo, writer, guide, restarted]);
  });
  afterAll(() => served.app.close());

  it('is copied, run again, and edited and sent again', async () => {
    const { page } = await visit(served.url, desktop);
    await say(page, 'echo', 'A **first** thing');
    await page.locator('.prose', { hasText: 'A first thing' }).waitFor();
    await page.getByRole('button', { name: 'Copy the message' }).click();
    await page.getByRole('status').filter({ hasText: 'Copied' }).waitFor();
    expect(await copied(page)).toBe('A **first** thing');
    await page.getByRole('button', { name: 'Run again' }).click();
    await page.locator('.turn').nth(1).locator('.badge', { hasText: 'completed' }).waitFor();
    await page.getByRole('button', { name: 'Edit and resend' }).last().click();
    const box = page.getByRole('textbox', { name: 'Message to echo' });
    await box.and(page.locator(':focus')).waitFor();
    await enter(box, 'A second thing');
    await page.locator('.prose', { hasText: 'A second thing' }).waitFor();
    expect(await messages(page)).toEqual(['A **first** thing', 'A **first** thing', 'A second thing']);
  });

  it('of a run from elsewhere is shown with its input', async () => {
    const body = { agent_name: 'echo', input: [{ parts: [{ content: 'From a script' }] }] };
    const { run_id } = await (await served.post('/runs', body)).json();
    const { page } = await visit(served.url, desktop);
    await page.goto(`${served.url}/#run=${run_id}`);
    await page.locator('.said', { hasText: 'From a script' }).waitFor();
  });

  it('that was interrupted says so, beside its author', async () => {
    const { page } = await visit(served.url, desktop);
    await say(page, 'restarted', 'Go');
    await page.locator('.prose', { hasText: 'The dog ran.' }).waitFor();
    const interrupted = page.locator('.message[data-interrupted]');
    expect(await interrupted.locator('.prose').allInnerTexts()).toEqual(['The cat']);
    await interrupted.getByText('Interrupted, and said again below').waitFor();
    expect(await violationsInBoth(page)).toEqual([]);
  });

  it.each([
    ['a desktop', desktop],
    ['a phone', phone],
  ])('has code with its language, JSON as a tree and its sources below it, on %s', async (name, look) => {
    const { page } = await visit(served.url, look);
    await page.goto(`${served.url}/#agent=writer`);
    await page.getByRole('textbox', { name: 'Message to writer' }).fill('Go');
    await page.keyboard.press('Enter');
    const block = page.locator('.code-block');
    await block.getByText('ts', { exact: true }).waitFor();
    await block.locator('.hljs-keyword', { hasText: 'const' }).waitFor();
    await block.getByRole('button', { name: 'Copy the code' }).click();
    await block.getByRole('status').filter({ hasText: 'Copied' }).waitFor();
    expect(await copied(page)).toBe(code);

    const tree = page.locator('.turn .json');
    await tree.getByText('"Inn"', { exact: true }).waitFor();
    await tree.locator('summary', { hasText: 'river' }).click();
    await tree.getByText('"Inn"', { exact: true }).waitFor({ state: 'hidden' });
    await tree.getByRole('button', { name: /^Copy .* as JSON$/ }).click();
    await tree.getByRole('status').filter({ hasText: 'Copied' }).waitFor();
    expect(JSON.parse(await copied(page))).toMatchObject({ long: true });

    const sources = page.getByRole('list', { name: 'Sources' });
    expect(await sources.getByRole('listitem').allInnerTexts()).toEqual(['A book · example.com', 'A talk']);
    await page.getByRole('button', { name: 'Source 1: A book' }).focus();
    await page.keyboard.press('Enter');
    await sources.getByRole('link', { name: 'A book' }).and(page.locator(':focus')).waitFor();
    expect(await violationsInBoth(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
    await picture(page, `message-${name}`);
  });
});

inPlayground('an empty conversation', () => {
  it.each([
    ['a desktop', desktop],
    ['a phone', phone],
  ])('shows what the agent needs and examples that are sent with a click, on %s', async (_, look) => {
    const served = await serve([guide]);
    const { page } = await visit(served.url, look);
    await page
      .locator('main')
      .getByRole('link', { name: /^guide/ })
      .click();
    await shows(page, 'RIVERS_URL');
    expect(await violationsInBoth(page)).toEqual([]);
    await page.getByRole('button', { name: 'A long text' }).click();
    await shows(page, 'Got The prompt of the long text');
  });

  it('does not keep an error when another agent is chosen, or when the server is back', async () => {
    const served = await listen([echo, guide]);
    const line = await CuttingProxy.open(served.url, []);
    const { page } = await visit(line.url, desktop, /net::ERR_/);
    await page.getByRole('link', { name: /^echo/ }).click();
    const problem = page.locator('.composer .problem');
    const fail = async (agent: string): Promise<void> => {
      line.break();
      await page.getByRole('textbox', { name: `Message to ${agent}` }).fill('Hello');
      await page.keyboard.press('Enter');
      await problem.waitFor();
    };
    await fail('echo');
    await page.getByText('runs of durable agents go on').waitFor();
    await page.getByRole('link', { name: /^guide/ }).click();
    await problem.waitFor({ state: 'detached' });
    await fail('guide');
    line.mend();
    await problem.waitFor({ state: 'detached' });
    await line.close();
    await served.app.close();
  });
});
