import { expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import echo from '../../agents/echo.ts';
import summarize from '../../agents/summarize.ts';
import { serve } from '../support/serve.ts';
import { listParts, showcase } from './agents.ts';
import { enter, inPlayground, picture, say, shows, visit } from './browser.ts';

inPlayground('a conversation in detail', () => {
  it('lists the sources of citations, shows artifacts, and loads nothing from other hosts', async () => {
    const { url } = await serve([showcase]);
    const { page } = await visit(url);
    await say(page, 'showcase', 'Show me');
    await page.getByRole('button', { name: /^Source 1: A book of rivers/ }).press('Enter');
    const source = page.getByRole('link', { name: 'A book of rivers' });
    await source.and(page.locator(':focus')).waitFor();
    expect(await source.getAttribute('href')).toBe('https://example.com/rivers');
    await page.getByRole('list', { name: 'Sources' }).getByText('Page 12').waitFor();
    expect(await page.locator('.cited').allInnerTexts()).toEqual(['Rivers carry ', 'snow', ' to the sea.']);
    await picture(page, 'showcase');
    await page.getByRole('img', { name: 'drop.svg' }).waitFor();
    await page.getByRole('link', { name: 'Open at example.com' }).waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Save rivers.json' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('rivers.json');
  });

  it('shows the citations of summarize', async () => {
    const { url } = await serve([summarize]);
    const { page } = await visit(url);
    await say(
      page,
      'summarize',
      'Rivers begin in the hills. Rivers end in the sea. The sea feeds the rivers with rain.',
    );
    await page.getByRole('button', { name: /^Source 1/ }).waitFor();
    expect(await page.locator('.cited').first().textContent()).toMatch(/^Rivers|^The sea/);
  });

  it('sends files with their names and types', async () => {
    const { url } = await serve([listParts]);
    const { page } = await visit(url);
    await page.getByRole('link', { name: /^list-parts/ }).click();
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'note.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b') });
    await page.getByText('3 B').waitFor();
    await say(page, 'list-parts', 'Here');
    await shows(page, 'text text/plain plain Here; note.csv text/csv plain a,b;');
  });

  it('stays at an old run that the user has opened while a newer one runs', async () => {
    const { url } = await serve([approve]);
    const { page } = await visit(url);
    await say(page, 'approve', 'First');
    await page.getByRole('textbox', { name: 'Your answer' }).fill('yes');
    await page.keyboard.press('Enter');
    await shows(page, 'Done: First');
    await say(page, 'approve', 'Other session');
    await page.getByRole('button', { name: 'Answer' }).waitFor();
    await page.getByRole('link', { name: /^First/ }).click();
    await shows(page, 'Done: First');
    const box = page.getByRole('textbox', { name: 'Message to approve' });
    await enter(box, 'Second');
    await page.getByRole('button', { name: 'Answer' }).waitFor();
    const response = page.waitForResponse(/session_id=/);
    await page.getByRole('link', { name: 'Inspect', exact: true }).click();
    await page.locator('.inspector .badge', { hasText: 'completed' }).waitFor();
    // The page may leave this list for the inspector's; then it never ends. Another answer has come after it.
    await response;
    await page.evaluate(() => fetch('/ping').then((answer) => answer.text()));
    expect(await page.locator('.turn').evaluateAll((turns) => turns.map((turn) => turn.dataset.followed))).toEqual([
      'true',
      'false',
    ]);
  });

  it('can be reopened', async () => {
    const { url } = await serve([echo]);
    const { page } = await visit(url);
    await say(page, 'echo', 'The first thing');
    await page.locator('.prose', { hasText: 'The first thing' }).waitFor();
    const box = page.getByRole('textbox', { name: 'Message to echo' });
    await enter(box, 'The second thing');
    await page.locator('.prose', { hasText: 'The second thing' }).waitFor();
    await page.getByRole('link', { name: 'New' }).click();
    await page.getByText('No messages yet.').waitFor();
    await page.getByRole('link', { name: /^The first thing/ }).click();
    await page.locator('.prose', { hasText: 'The second thing' }).waitFor();
    expect(await page.locator('.said').allInnerTexts()).toEqual(['The first thing', 'The second thing']);
    expect(await page.locator('.prose').allInnerTexts()).toEqual(['The first thing', 'The second thing']);
  });
});
