import { expect, it, vi } from 'vitest';
import approve from '../../agents/approve.ts';
import chat from '../../agents/chat.ts';
import echo from '../../agents/echo.ts';
import summarize from '../../agents/summarize.ts';
import { startLlm } from '../agents/llm.ts';
import { Tap } from '../support/agents.ts';
import { serve } from '../support/serve.ts';
import { order, parcel, showcase } from './agents.ts';
import { inPlayground, picture, say, shows, visit } from './browser.ts';

inPlayground('a conversation', () => {
  it('begins with the agents and what they say of themselves', async () => {
    const { url } = await serve([echo, showcase]);
    const { page } = await visit(url);
    await page.getByRole('heading', { name: 'Choose an agent' }).waitFor();
    await page.getByRole('link', { name: /^echo Returns each message/ }).click();
    await page.getByText('MIT').waitFor();
    await picture(page, 'begin');
  });

  it('is answered by echo, and shows the figures that come of it', async () => {
    const { url } = await serve([echo]);
    const { page } = await visit(url);
    await say(page, 'echo', 'Good *day* <b>to</b> [you](javascript:alert(1)) ![x](https://example.com/x.png)');
    await page.locator('.prose em', { hasText: 'day' }).waitFor();
    await page.getByText('100% ok').waitFor();
    // HTML, pictures from elsewhere and links that run are shown as the text that they are.
    expect(await page.locator('.prose :is(b, img, a)').count()).toBe(0);
    await shows(page, '<b>');
  });

  it('shows a model’s tokens as they come, and the steps that it took', async ({ onTestFinished }) => {
    let goOn = (): void => {};
    const told = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const llm = await startLlm(({ body }) =>
      body.messages.at(-1)?.role === 'tool' ? answer() : [{ tool: 'calculate', input: { expression: '6 * 7' } }],
    );
    async function* answer() {
      yield '## The answer\n\n';
      await told;
      for (const token of ['It ', 'is ', '**42**.']) yield token;
    }
    onTestFinished(() => llm.close());
    vi.stubEnv('OPENAI_BASE_URL', llm.url);
    onTestFinished(() => void vi.unstubAllEnvs());
    const { url } = await serve([chat]);
    const { page } = await visit(url);
    await say(page, 'chat', 'What is 6 * 7?');
    await page.getByRole('heading', { name: 'The answer' }).waitFor();
    await page.locator('.turn .badge', { hasText: 'in-progress' }).waitFor();
    goOn();
    await page.locator('.prose strong', { hasText: '42' }).waitFor();
    await page.getByText('One step').click();
    await page.getByText('"expression":"6 * 7"').waitFor();
    await page.getByRole('status').filter({ hasText: 'chat has answered.' }).waitFor({ state: 'attached' });
  });

  it('shows citations with their source, artifacts to see and to save, and nothing of another host', async () => {
    const { url } = await serve([showcase]);
    const { page } = await visit(url);
    await say(page, 'showcase', 'Show me');
    await page.getByRole('button', { name: /^Source 1: A book of rivers/ }).focus();
    await page.getByRole('tooltip').getByText('Page 12').waitFor();
    expect(await page.locator('.cited').allInnerTexts()).toEqual(['Rivers carry ', 'snow', ' to the sea.']);
    await picture(page, 'showcase');
    await page.keyboard.press('Escape');
    expect(await page.getByRole('tooltip').count()).toBe(0);

    await page.getByRole('img', { name: 'drop.svg' }).waitFor();
    await page.getByRole('link', { name: 'Open at example.com' }).waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Save rivers.json' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('rivers.json');
  });

  it('cites where summarize found its sentences', async () => {
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

  it('asks what approve asks, and goes on when it is answered', async () => {
    const { url } = await serve([approve]);
    const { page } = await visit(url);
    await say(page, 'approve', 'Open the sluice');
    await page.getByRole('textbox', { name: 'Your answer' }).fill('yes');
    await picture(page, 'approve');
    await page.getByRole('button', { name: 'Answer' }).click();
    await shows(page, 'Done: Open the sluice');
    expect(await page.getByRole('button', { name: 'Answer' }).count()).toBe(0);
  });

  it('makes a form of a schema, and shows at a field what the server has against it', async () => {
    const { url } = await serve([order]);
    const { page } = await visit(url, {}, /422/);
    await say(page, 'order', 'Hello');
    await page.getByLabel('Item').selectOption('pears');
    await page.getByRole('button', { name: 'Answer' }).click();
    await page.getByText('is required.').waitFor();
    await page.getByLabel('Amount').fill('0');
    await page.getByRole('button', { name: 'Answer' }).click();
    await page.getByText('must be >= 1').waitFor();
    expect(await page.getByLabel('Amount').getAttribute('aria-invalid')).toBe('true');
    await page.getByLabel('As a gift').check();
    await page.getByLabel('Notes').fill('ripe\nlarge');
    await picture(page, 'form');
    await page.getByLabel('Amount').fill('3');
    await page.getByRole('button', { name: 'Answer' }).click();
    await shows(page, '{"item":"pears","amount":3,"gift":true,"notes":["ripe","large"]}');
  });

  it('stops a run', async () => {
    const tap = new Tap();
    const { url } = await serve([tap.agent]);
    const { page } = await visit(url);
    await say(page, 'tap', 'Go');
    await tap.started();
    tap.push('A beginning');
    await shows(page, 'A beginning');
    await page.getByRole('button', { name: 'Stop the run' }).click();
    await page.locator('.turn .badge', { hasText: 'cancelled' }).waitFor();
    await page.getByRole('button', { name: 'Stop the run' }).waitFor({ state: 'detached' });
    expect(tap.unsubscriptions).toBe(1);
  });

  it('sends files with their names and types', async () => {
    const { url } = await serve([parcel]);
    const { page } = await visit(url);
    await page.getByRole('link', { name: /^parcel/ }).click();
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'note.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b') });
    await page.getByText('3 B').waitFor();
    await say(page, 'parcel', 'Here');
    await shows(page, 'text text/plain plain Here; note.csv text/csv base64 YSxi;');
  });

  it('stays with an old run that somebody looks at, though a newer one goes on', async () => {
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
    await box.fill('Second');
    await box.press('Enter');
    await page.getByRole('button', { name: 'Answer' }).waitFor();
    const asked = page.waitForResponse(/session_id=/);
    await page.getByRole('link', { name: 'Inspect', exact: true }).click();
    await page.locator('.inspector .badge', { hasText: 'completed' }).waitFor();
    await (await asked).finished();
    expect(await page.locator('.turn').evaluateAll((turns) => turns.map((turn) => turn.dataset.followed))).toEqual([
      'true',
      'false',
    ]);
  });

  it('can be come back to', async () => {
    const { url } = await serve([echo]);
    const { page } = await visit(url);
    await say(page, 'echo', 'The first thing');
    await page.locator('.prose', { hasText: 'The first thing' }).waitFor();
    const box = page.getByRole('textbox', { name: 'Message to echo' });
    await box.fill('The second thing');
    await box.press('Enter');
    await page.locator('.prose', { hasText: 'The second thing' }).waitFor();
    await page.getByRole('link', { name: 'New' }).click();
    await page.getByText('Nothing said yet.').waitFor();
    await page.getByRole('link', { name: /^The first thing/ }).click();
    await page.locator('.prose', { hasText: 'The second thing' }).waitFor();
    expect(await page.locator('.said').allInnerTexts()).toEqual(['The first thing', 'The second thing']);
    expect(await page.locator('.prose').allInnerTexts()).toEqual(['The first thing', 'The second thing']);
  });
});
