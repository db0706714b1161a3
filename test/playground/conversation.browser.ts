import { expect, it, vi } from 'vitest';
import approve from '../../agents/approve.ts';
import chat from '../../agents/chat.ts';
import echo from '../../agents/echo.ts';
import { startLlm } from '../agents/llm.ts';
import { Tap } from '../support/agents.ts';
import { deferred } from '../support/deferred.ts';
import { serve } from '../support/serve.ts';
import { showcase } from './agents.ts';
import { inPlayground, picture, say, shows, visit } from './browser.ts';

inPlayground('a conversation', () => {
  it('starts with the agents and their descriptions', async () => {
    const { url } = await serve([echo, showcase]);
    const { page } = await visit(url);
    await page.getByRole('heading', { name: 'Choose an agent' }).waitFor();
    await page.getByRole('link', { name: /^echo Returns each message/ }).click();
    await page.getByText('MIT').waitFor();
    await picture(page, 'begin');
  });

  it('shows the output of echo and its statistics', async () => {
    const { url } = await serve([echo]);
    const { page } = await visit(url);
    await say(page, 'echo', 'Good *day* <b>to</b> [you](javascript:alert(1)) ![x](https://example.com/x.png)');
    await page.locator('.prose em', { hasText: 'day' }).waitFor();
    await page.getByText('100% ok').waitFor();
    // HTML, images of other hosts and links that run scripts are shown as text.
    expect(await page.locator('.prose :is(b, img, a)').count()).toBe(0);
    await shows(page, '<b>');
  });

  it('shows a model’s tokens as they arrive, and its steps', async ({ onTestFinished }) => {
    const { promise: resumed, resolve: resume } = deferred();
    const llm = await startLlm(({ body }) =>
      body.messages.at(-1)?.role === 'tool' ? answer() : [{ tool: 'calculate', input: { expression: '6 * 7' } }],
    );
    async function* answer() {
      yield '## The answer\n\n';
      await resumed;
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
    resume();
    await page.locator('.prose strong', { hasText: '42' }).waitFor();
    await page.locator('summary.step', { hasText: 'calculate' }).click();
    await page.locator('.turn .json').getByText('6 * 7').waitFor();
    await page.getByRole('status').filter({ hasText: 'chat has answered.' }).waitFor({ state: 'attached' });
  });

  it('shows the question of approve, and goes on after the reply', async () => {
    const { url } = await serve([approve]);
    const { page } = await visit(url);
    await say(page, 'approve', 'Open the sluice');
    await page.getByRole('textbox', { name: 'Your answer' }).fill('yes');
    await picture(page, 'approve');
    await page.getByRole('button', { name: 'Answer' }).click();
    await shows(page, 'Done: Open the sluice');
    expect(await page.getByRole('button', { name: 'Answer' }).count()).toBe(0);
  });

  it('shows the followed run when the address names the run alone', async () => {
    const { url } = await serve([echo]);
    const { page } = await visit(url);
    await say(page, 'echo', 'Good morning');
    await page.locator('.prose', { hasText: 'Good morning' }).waitFor();
    const run = new URLSearchParams(new URL(page.url()).hash.slice(1)).get('run');
    await page.goto(`${url}/#run=${run}`);
    await page.waitForURL(/agent=echo/);
    await page.locator('.prose', { hasText: 'Good morning' }).waitFor();
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
});
