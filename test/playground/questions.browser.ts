import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import { listen, type Served } from '../support/serve.ts';
import { interview, threeTexts, travel } from './agents.ts';
import { violationsInBoth } from './axe.ts';
import { enter, inPlayground, picture, say, shows, visit } from './browser.ts';

const desktop = { width: 1440, height: 900 };
const phone = { width: 390, height: 844 };

const focused = (page: Page) => page.locator(':focus');
const answerBox = (page: Page) => page.getByRole('textbox', { name: 'Your answer' });
const runs = (page: Page): Promise<number> => page.locator('.turn').count();

inPlayground('a question', () => {
  let served: Served;
  beforeAll(async () => {
    served = await listen([approve, interview, threeTexts, travel]);
  });
  afterAll(() => served.app.close());

  /** Opens the page at an agent, and sends it a message. */
  async function ask(agent: string, look: typeof desktop) {
    const { page } = await visit(served.url, look, /422/);
    await page.goto(`${served.url}/#agent=${agent}`);
    const box = page.getByRole('textbox', { name: `Message to ${agent}` });
    await enter(box, 'Go');
    return page;
  }

  it('is answered in the composer, which starts no run meanwhile, and stays as a card with its answer', async () => {
    const { page } = await visit(served.url, desktop);
    await say(page, 'interview', 'Go');
    await answerBox(page).and(focused(page)).waitFor();
    await page.getByText('what you type here is the answer').waitFor();
    await page.keyboard.type('Ada');
    await page.keyboard.press('Enter');
    await page.locator('.question[data-state="answered"] .said', { hasText: 'Ada' }).waitFor();
    // A question for yes or no has buttons, and the composer takes any other text.
    await page.getByRole('button', { name: 'No', exact: true }).waitFor();
    await enter(answerBox(page), 'yes');
    await shows(page, 'Is that all?');
    await page.getByRole('button', { name: 'Yes', exact: true }).click();
    await shows(page, 'Got true.');
    expect(await runs(page)).toBe(1);
    await page.reload();
    const cards = page.locator('.question[data-state="answered"]');
    await cards.nth(2).waitFor();
    expect(await cards.locator('.said').allInnerTexts()).toEqual(['Ada', 'yes', 'Yes']);
    await cards
      .first()
      .getByText(/^Answered \d\d:\d\d:\d\d, through playground$/)
      .waitFor();
    expect(await violationsInBoth(page)).toEqual([]);
    await picture(page, 'questions');
  });

  it('has the focus when it comes at once after the answer to another one', async () => {
    const page = await ask('three-texts', desktop);
    for (const question of ['First?', 'Second?', 'Third?']) {
      await shows(page, question);
      await answerBox(page).and(focused(page)).waitFor();
      await page.keyboard.type('so');
      await page.keyboard.press('Enter');
    }
    await page.locator('.turn .badge', { hasText: 'completed' }).waitFor();
  });

  it('is left with Escape to start another run, and can be returned to', async () => {
    const page = await ask('approve', desktop);
    await answerBox(page).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('textbox', { name: 'Message to approve' }).and(focused(page)).waitFor();
    await page.getByText('still waits for an answer').waitFor();
    await page.getByRole('button', { name: 'Answer the question' }).click();
    await answerBox(page).and(focused(page)).waitFor();
    await page.keyboard.type('no');
    await page.keyboard.press('Enter');
    await shows(page, 'Then I leave it.');
    expect(await runs(page)).toBe(1);
  });

  it.each([
    ['a desktop', desktop],
    ['a phone', phone],
  ])('with a schema is a form that shows all problems at once, on %s', async (name, look) => {
    const page = await ask('travel', look);
    // The form is opened at its top, with the focus in its first field.
    await page.getByLabel('Place').and(focused(page)).waitFor();
    const top = (await page.locator('.question').boundingBox())?.y ?? 0;
    expect(top).toBeGreaterThan((await page.locator('.scroller').boundingBox())?.y ?? 0);
    expect(top).toBeLessThan(look.height / 3);
    expect(await violationsInBoth(page)).toEqual([]);
    await page.getByLabel('Day').fill('2026-12-24');
    await page.getByLabel('Nights').fill('99');
    await page.getByLabel('E-mail').fill('no-address');
    const answer = page.getByRole('button', { name: 'Answer', exact: true });
    await answer.click();
    await page.getByLabel('Place').and(page.locator('[aria-invalid]:focus')).waitFor();
    expect(await page.locator('.question .problem').allInnerTexts()).toEqual([
      'is required',
      'must be <= 30',
      'must match format "email"',
      'is required',
      'is required',
    ]);
    const described = await page.getByLabel('Nights').getAttribute('aria-describedby');
    expect(described?.split(' ')).toHaveLength(2);
    expect(await violationsInBoth(page)).toEqual([]);
    await picture(page, `form-${name}`);

    await page.getByLabel('Place').fill('Maloja');
    await page.getByLabel('Time').fill('10:30');
    await page.getByLabel('Nights').fill('3');
    await page.getByLabel('E-mail').fill('ada@example.org');
    await page.getByLabel('lunch').check();
    await page.getByLabel('breakfast').check();
    await page.getByRole('radiogroup', { name: 'Insured' }).getByText('No', { exact: true }).click();
    // An optional object can be added, and left out again.
    await page.getByRole('button', { name: '+ Second passenger' }).click();
    await page.getByLabel('Name').waitFor();
    await page.getByRole('button', { name: 'Leave out Second passenger' }).click();
    await answer.click();
    await shows(page, /^Booked: /);
    const booked = await page.locator('.prose', { hasText: 'Booked:' }).textContent();
    expect(JSON.parse(booked?.replace('Booked: ', '') ?? '')).toEqual({
      from: 'Maloja',
      day: '2026-12-24',
      at: expect.stringMatching(/^10:30:00[+-]\d\d:\d\d$/),
      nights: 3,
      mail: 'ada@example.org',
      meals: ['breakfast', 'lunch'],
      insured: false,
    });
    const card = page.locator('.question[data-state="answered"]');
    expect(await card.locator('dt').allInnerTexts()).toContain('E-mail');
    await card.getByText('breakfast, lunch').waitFor();
  });
});
