import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import type { Run } from '../../src/index.ts';
import { agent, echo, Tap } from '../support/agents.ts';
import { ask, listen, type Served } from '../support/serve.ts';
import { violationsInBoth } from './axe.ts';
import { inPlayground, looks, picture, soon, visit } from './browser.ts';

const prompt = 'Tell me about the "Inn" & others\nin two lines';
const guide = agent('guide', () => 'Here it goes.', {
  metadata: { tags: ['rivers'], examples: ['Which river is long?', { title: 'About the Inn', prompt }] },
});
const broken = agent('broken', () => {
  throw new Error('the upstream 01a0c1d2-1111-7222-8333-123456789012 is away');
});
const tap = new Tap();
inPlayground('the lists', () => {
  let served: Served;
  beforeAll(async () => {
    served = await listen([echo, approve, broken, guide, tap.agent]);
  });
  afterAll(() => served.app.close());
  const create = async (agent_name: string, text: string, mode = 'sync'): Promise<Run> =>
    (await served.post('/runs', ask(agent_name, text, { mode }))).json();

  describe.each(looks)('on $name', (look) => {
    const open = (place = '', expected?: RegExp) => visit(`${served.url}/${place}`, look, expected);
    /** In both colours: nothing is cut at the side, and axe-core finds nothing. */
    const looksGood = async (page: Page, name: string): Promise<void> => {
      const [has, wide] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      expect(has, name).toBe(wide);
      expect(await violationsInBoth(page), name).toEqual([]);
      await picture(page, `${name}-${look.width}`);
    };
    const view = (page: Page, name: RegExp) => page.getByRole('navigation').getByRole('link', { name }).click();

    it('begin with the agents as cards; a prompt goes into the box of a new conversation', async () => {
      const { page } = await open();
      const prompts = page.getByRole('list', { name: 'Prompts for guide' });
      await prompts.getByRole('link', { name: 'Which river is long?' }).waitFor();
      await page.getByText('rivers', { exact: true }).waitFor();
      await looksGood(page, 'agents');
      await prompts.getByRole('link', { name: 'About the Inn' }).click();
      const box = page.getByRole('textbox', { name: 'Message to guide' });
      await expect.poll(() => box.inputValue(), soon).toBe(prompt);
      // A reload does not put it there again.
      expect(page.url()).not.toContain('prompt');
      await box.press('Enter');
      await page.locator('main').getByText('Here it goes.').waitFor();
    });

    it('have the runs with their errors and ages; the address keeps the filters', async () => {
      const failed = await create('broken', 'Go');
      await create('echo', 'One');
      const { page } = await open('#view=runs');
      const rows = page.locator('tbody tr');
      await rows.filter({ hasText: 'broken' }).first().getByText('is away').waitFor();
      await rows
        .filter({ hasText: 'echo' })
        .first()
        .getByText(/^(now|\d+ s ago)$/)
        .waitFor();
      const exact = await rows.filter({ hasText: 'echo' }).first().locator('time').getAttribute('title');
      expect(exact).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/);
      await rows.filter({ hasText: 'echo' }).first().getByRole('link', { name: 'One' }).waitFor();
      await looksGood(page, 'runs');
      await page.getByLabel('Agent', { exact: true }).selectOption('broken');
      await rows.filter({ hasText: 'echo' }).first().waitFor({ state: 'detached' });
      await page.getByLabel('Status', { exact: true }).selectOption('failed');
      await page.getByRole('searchbox', { name: 'Search the runs' }).fill('01A0C1D2');
      await page.getByText(/^Searched \d+ loaded runs\.$/).waitFor();
      const address = page.url();
      await page.goBack();
      await page.goBack();
      await rows.filter({ hasText: 'echo' }).first().waitFor();
      // A shared link shows the same rows.
      const { page: other } = await open(new URL(address).hash);
      await other.locator('tbody tr').first().waitFor();
      expect(await other.locator('tbody .agent').allTextContents()).toContain('broken');
      expect(new Set(await other.locator('tbody .agent').allTextContents())).toEqual(new Set(['broken']));
      await other.getByRole('searchbox').fill('no such text');
      await other.getByText('No loaded run contains “no such text”.').waitFor();
      await other.getByRole('searchbox').fill(failed.run_id);
      // The whole row is a target, and its link is for the keyboard.
      await other
        .locator('tbody tr')
        .first()
        .click({ position: { x: 8, y: 8 } });
      await other.locator('.turn .problem').getByText('is away').waitFor();
      await other.goBack();
      await other.locator('tbody a').first().focus();
      await other.keyboard.press('Enter');
      await other.locator('.turn .problem').getByText('is away').waitFor();
    });

    it('follow the runs, and load older ones', async () => {
      const { page } = await open('#view=runs&ofAgent=tap');
      const loads: string[] = [];
      page.on('request', (request) => request.url().includes('agent_name=tap') && loads.push(request.url()));
      await Promise.all(Array.from({ length: 60 }, (_, index) => create('echo', `Echo ${index}`)));
      const { run_id } = await create('tap', 'Go', 'async');
      await tap.started();
      const row = page.locator('tbody tr').filter({ has: page.locator(`a[href*="${run_id}"]`) });
      await row.getByText('in-progress').waitFor();
      tap.complete();
      await row.getByText('completed').waitFor();
      // The feed has the changes: the page is loaded at the beginning, and when the feed has begun.
      expect(loads.length).toBeLessThanOrEqual(2);
      await page.getByLabel('Agent', { exact: true }).selectOption('echo');
      await page.getByRole('button', { name: 'Load older runs' }).click();
      await expect.poll(() => page.locator('tbody tr').count(), soon).toBeGreaterThanOrEqual(60);
    });

    it('have the questions that await a reply, and their number in the navigation', async () => {
      const { page } = await open();
      await page.getByRole('navigation').getByRole('link', { name: 'Awaiting' }).waitFor();
      const before = Number((await page.locator('.count').allTextContents())[0] ?? 0);
      await create('approve', 'Open the sluice');
      await create('approve', 'Close the gate');
      await page
        .getByRole('navigation')
        .getByRole('link', { name: `Awaiting ${before + 2}` })
        .click();
      const questions = page.locator('.questions li');
      await expect.poll(() => questions.count(), soon).toBe(before + 2);
      await questions
        .first()
        .getByText(/waits for \d+ (s|min)/)
        .waitFor();
      await looksGood(page, 'awaiting');
      await questions.last().getByRole('link').click();
      await page.getByRole('button', { name: 'Answer' }).waitFor();
      const { await_request: _, run_id } = await (
        await served.get(`/runs/${new URLSearchParams(new URL(page.url()).hash.slice(1)).get('run')}`)
      ).json();
      await served.post(`/runs/${run_id}`, {
        await_resume: { message: { parts: [{ content: 'yes' }] } },
        mode: 'sync',
      });
      await view(page, /^Awaiting/);
      await expect.poll(() => questions.count(), soon).toBe(before + 1);
      await page
        .getByRole('navigation')
        .getByRole('link', { name: `Awaiting ${before + 1}` })
        .waitFor();
    });
  });
});
