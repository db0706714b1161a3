import type { Page } from 'playwright-core';
import { textOf } from 'rivulet';
import { afterAll, beforeAll, expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import { showcase } from '../protocols/ai-sdk/agents.ts';
import { agent, Tap } from '../support/agents.ts';
import { inBrowser, newPage } from '../support/browser.ts';
import { type ExamplePages, openPages } from './ui-server.ts';

/** A question of yes or no. */
const pays = agent('pays', async function* (input, context) {
  yield `You owe me ${textOf(input)}. `;
  const { message } = await context.await('Shall I pay?', { schema: { type: 'boolean' } });
  yield textOf(message) === 'true' ? 'Paid.' : 'Then not.';
});

inBrowser('the chat of the AI SDK in the examples', () => {
  const tap = new Tap();
  let pages: ExamplePages;

  beforeAll(async () => {
    pages = await openPages([approve, pays, showcase, tap.agent]);
  });
  afterAll(async () => {
    await pages?.close();
  });

  async function open(agent: string): Promise<{ page: Page; wrong: string[] }> {
    const page = await newPage();
    const wrong: string[] = [];
    page.on('pageerror', (error) => wrong.push(error.message));
    await page.goto(`${pages.base}ai-sdk.html?agent=${agent}`);
    return { page, wrong };
  }

  const say = async (page: Page, label: string, text: string): Promise<void> => {
    await page.getByLabel(label).fill(text);
    await page.getByLabel(label).press('Enter');
  };
  const answers = (page: Page) => page.locator('section[data-role=assistant]');

  it('asks, and sends the reply of the person', async () => {
    const { page, wrong } = await open('approve');
    await say(page, 'Say something', 'dance');
    await page.getByText('I am about to do this: dance').waitFor();
    await say(page, 'Shall I?', 'yes');
    await page.getByText('Done: dance').waitFor();
    expect([await answers(page).count(), wrong]).toEqual([1, []]);
    await page.close();
  });

  it.each([
    ['Approve', 'Paid.'],
    ['Deny', 'Then not.'],
  ])('%s of an approval, also after a reload, shows %s', async (button, said) => {
    const { page, wrong } = await open('pays');
    await say(page, 'Say something', '5');
    await page.getByText('Shall I pay?').waitFor();
    await page.reload();
    await page.getByRole('button', { name: button }).click();
    await page.getByText(said).waitFor();
    expect([await answers(page).count(), wrong]).toEqual([1, []]);
    await page.close();
  });

  it('goes on after a reload in the middle of an answer, and shows it once', async () => {
    const { page, wrong } = await open('tap');
    await say(page, 'Say something', 'go');
    await tap.started();
    tap.push('One, ');
    await page.getByText('One,').waitFor();
    await page.reload();
    await page.getByText('One,').waitFor();
    tap.push('two, ');
    await page.getByText('One, two,').waitFor();
    tap.push('three.');
    tap.complete();
    await page.getByText('One, two, three.', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Again' }).waitFor();
    await page.reload();
    await page.getByText('One, two, three.', { exact: true }).waitFor();
    expect([await answers(page).count(), wrong]).toEqual([1, []]);
    await page.close();
  });

  it('shows reasoning, sources, tools and files, once', async () => {
    const { page, wrong } = await open('showcase');
    await say(page, 'Say something', 'the sky');
    await page.getByText('Shall I go on?').waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('You said true to the sky. 0 1 2 3 4').waitFor();
    const answer = answers(page);
    expect(await answer.locator('em').allTextContents()).toEqual(['Thinking of it.']);
    expect(
      await answer.getByRole('link').evaluateAll((links) => links.map((link) => link.getAttribute('href'))),
    ).toEqual(['https://example.com/a', expect.stringMatching(/^data:image\/png;base64,/)]);
    expect(await answer.getByText('look {"at":"sky"}').count()).toBe(1);
    expect([await answer.count(), wrong]).toEqual([1, []]);
    await page.close();
  });

  it('stops an answer, and shows what it has', async () => {
    const { page, wrong } = await open('tap');
    const before = tap.subscriptions;
    await say(page, 'Say something', 'go');
    await expect.poll(() => tap.subscriptions).toBe(before + 1);
    tap.push('One, ');
    await page.getByText('One,').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Again' }).waitFor();
    expect([await answers(page).allTextContents(), wrong]).toEqual([['One, '], []]);
    await page.close();
  });

  it('ends the work of the agent by Stop, also for a page that watches, and then answers anew', async () => {
    const { page, wrong } = await open('tap');
    const { subscriptions, unsubscriptions } = tap;
    await say(page, 'Say something', 'go');
    await expect.poll(() => tap.subscriptions).toBe(subscriptions + 1);
    tap.push('One, ');
    await page.getByText('One,').waitFor();
    const other = await newPage();
    await other.goto(page.url());
    await other.getByText('One,').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await other.getByRole('button', { name: 'Again' }).waitFor();
    await expect.poll(() => tap.unsubscriptions).toBe(unsubscriptions + 1);
    await page.getByRole('button', { name: 'Again' }).click();
    await expect.poll(() => tap.subscriptions).toBe(subscriptions + 2);
    tap.push('Two.');
    tap.complete();
    await page.getByText('Two.', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Again' }).waitFor();
    await page.reload();
    await page.getByText('Two.', { exact: true }).waitFor();
    expect([await answers(page).allTextContents(), wrong]).toEqual([['Two.'], []]);
    for (const one of [page, other]) await one.close();
  });

  it('shows the error of the server', async () => {
    const { page } = await open('missing');
    await say(page, 'Say something', 'hi');
    await page.getByRole('alert').getByText('There is no agent missing').waitFor();
    await page.close();
  });
});
