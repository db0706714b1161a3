import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import type { Agent } from '../../src/index.ts';
import { agent, durable, Tap } from '../support/agents.ts';
import { ask, serve } from '../support/serve.ts';
import { violationsInBoth } from './axe.ts';
import { inPlayground, picture, say, shows, soon, visit } from './browser.ts';

const started = Date.UTC(2026, 0, 1);
const markup = '<img src=x onerror="document.title=\'broken\'">';
const text = (role: string, content: string) => ({ role, parts: [{ type: 'text', content }] });

/** Calls a model twice, a tool between both, and keeps lines and a state. */
const traveller: Agent = durable('traveller', async function* (input, { log, modelCall, step, tool, session }) {
  const question = text('user', input[0]?.parts[0]?.content ?? '');
  const system = text('system', `You plan journeys. ${'Be brief. '.repeat(2_000)}`);
  const tools = [{ name: 'trains', description: 'Finds trains.', parameters: { type: 'object' } }];
  const call = {
    role: 'assistant',
    parts: [{ type: 'tool_call', id: 'c1', name: 'trains', arguments: { to: 'Wien' } }],
  };
  log.info(`Begins ${markup}`);
  await step('first', async () =>
    modelCall({
      model: 'gpt-small',
      provider: 'local',
      started,
      firstToken: started + 250,
      ended: started + 1_500,
      input: [system, question],
      tools,
      output: [call],
      input_tokens: 1_200,
      output_tokens: 16,
      finish_reasons: ['tool_calls'],
    }),
  );
  const found = yield* tool('trains', { to: 'Wien' }, async () => ({ at: ['8:02', '9:02'] }));
  log.warn('Only two trains.');
  await step('second', async () =>
    modelCall({
      model: 'gpt-small',
      started,
      ended: started + 900,
      input: [
        system,
        question,
        call,
        { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: found }] },
      ],
      output: [text('assistant', `Take the train at 8:02. ${markup}`)],
      finish_reasons: ['stop'],
    }),
  );
  await session.setState({ journeys: 1 });
  modelCall({ model: 'gpt-large', started, ended: started + 90, error: new Error('The model is overloaded.') });
  yield 'Take the train at 8:02.';
});

const tabs = ['Events', 'Models', 'Tools', 'Session', 'Timeline', 'Run', 'Requests'];
const open = (page: Page, name: string): Promise<void> => page.getByRole('tab', { name, exact: true }).click();
const panel = (page: Page, name: string) => page.getByRole('tabpanel', { name });

/** Opens the inspector of a run that has ended. */
async function inspect(
  agents: Agent[],
  width = 1_440,
  options: Parameters<typeof serve>[1] = { captureContent: true },
) {
  const { url, post } = await serve(agents, options);
  const run = await (await post('/runs', ask(agents[0]?.manifest.name ?? '', 'To Wien'))).json();
  const { page } = await visit(`${url}/#run=${run.run_id}`, { width, height: 900 });
  if (width < 1_000) await page.getByRole('navigation').getByRole('link', { name: 'Inspector' }).click();
  await page.locator('.inspector .badge', { hasText: 'completed' }).waitFor();
  return { page, run_id: run.run_id as string };
}

inPlayground('the details of a run', () => {
  it('are its model calls, with what each model was told and answered', async () => {
    const { page } = await inspect([traveller]);
    await open(page, 'Models');
    const models = panel(page, 'Models');
    await models.getByText('gpt-large').waitFor();
    const calls = models.locator('.model-calls > li');
    expect(await calls.count()).toBe(3);
    const first = (await calls.first().textContent()) ?? '';
    expect(first).toContain('1.50 s');
    expect(first).toContain('tool_calls');
    expect(first).toContain('first token after 250 ms · 1,200 tokens in · 16 tokens out');
    expect(await calls.last().textContent()).toContain('failed');

    await calls.first().getByText('gpt-small').click();
    const told = calls.first().getByRole('region', { name: 'What it was told' });
    await told.getByText('To Wien').waitFor();
    // A long prompt is a line until it is opened, and then shown a part at a time.
    await told.locator('.type', { hasText: 'system' }).click();
    await told.getByText(/^You plan journeys\./).waitFor();
    await told.getByRole('button', { name: /^Show [\d,]+ more of 20,019 characters$/ }).click();
    expect(await told.locator('.long').first().textContent()).toHaveLength(20_019);
    await calls.first().getByText('Tools that it may call: 1').click();
    await calls.first().getByText('"name": "trains"').waitFor();
    await calls.first().getByText('Calls trains (c1)').waitFor();

    await calls.nth(1).getByText('gpt-small').click();
    const answer = calls.nth(1).getByRole('region', { name: 'What it answered' });
    await answer.getByText(markup).waitFor();
    await calls.nth(1).getByText('Result (c1)').waitFor();
    expect(await page.title()).not.toBe('broken');

    await calls.last().getByText('gpt-large').click();
    await calls.last().getByText('The model is overloaded.').waitFor();
    await calls.last().getByText('No messages are kept of this call.').waitFor();
  });

  it('are its tools, the lines of its log in their places, and its session', async () => {
    const { page } = await inspect([traveller]);
    await open(page, 'Tools');
    const tools = panel(page, 'Tools');
    await tools.getByText('trains').click();
    await tools.getByText('"to": "Wien"').waitFor();
    await tools.getByText('"8:02"').waitFor();

    await open(page, 'Events');
    const log = panel(page, 'Events');
    await log.getByRole('button', { name: 'Log lines' }).click();
    await log.getByText('Only two trains.').waitFor();
    await log.getByText(`Begins ${markup}`).waitFor();
    const rows = await log.locator('.events .type').allTextContents();
    expect(rows.slice(0, 4)).toEqual(['run.created', 'run.in-progress', 'info', 'message.created']);
    expect(rows.filter((type) => type === 'warn')).toHaveLength(1);

    await open(page, 'Session');
    const session = panel(page, 'Session');
    await session.getByText('"journeys": ').waitFor();
    await session.getByText('To Wien').waitFor();
    await session.getByText('Take the train at 8:02.').waitFor();
  });

  it('are in the page only as far as they are opened, however long a prompt is', async () => {
    const input = Array.from({ length: 200 }, (_, index) =>
      text(index % 2 ? 'assistant' : 'user', `${index} ${'x'.repeat(1_000)}`),
    );
    const long = agent('long', (_, { modelCall }) => {
      modelCall({ model: 'slow-model', started, input: [...input, text('user', 'word '.repeat(50_000))] });
      return 'done';
    });
    const { page } = await inspect([long]);
    await open(page, 'Models');
    const models = panel(page, 'Models');
    await models.getByText('slow-model').click();
    await models.getByRole('button', { name: 'Show 100,000 more of 250,000 characters' }).waitFor();
    const shown = async (): Promise<number> => (await models.textContent())?.length ?? 0;
    expect(await models.locator('.told li').count()).toBe(20);
    expect(await shown()).toBeLessThan(10_000);
    await models.getByRole('button', { name: '181 earlier messages' }).click();
    await models.getByRole('button', { name: '161 earlier messages' }).waitFor();
    expect(await models.locator('.told li').count()).toBe(40);
    expect(await shown()).toBeLessThan(10_000);
  });

  it('say how content is switched on, where the server keeps none', async () => {
    const { page } = await inspect([traveller], 1_440, { captureContent: false });
    await open(page, 'Models');
    const models = panel(page, 'Models');
    await models.getByText('gpt-small').first().click();
    await models.getByText('--capture-content on').waitFor();
    await open(page, 'Events');
    await page.getByRole('button', { name: 'Log lines' }).click();
    await panel(page, 'Events').getByText('--capture-content on').waitFor();
  });

  it('say which scope a caller needs', async () => {
    const { url, post } = await serve([traveller], {
      auth: { authenticate: () => ({ id: 'alice', scopes: ['runs:read', 'runs:write'] }) },
    });
    const run = await (await post('/runs', ask('traveller', 'To Wien'))).json();
    const { page } = await visit(`${url}/#run=${run.run_id}`, {}, /403/);
    await open(page, 'Models');
    await panel(page, 'Models').getByText('are for callers with the scope admin').waitFor();
  });

  it('follow a run that goes on, and ask for nothing while it is silent', async () => {
    const tap = new Tap();
    const reports: (() => void)[] = [];
    const caller = agent('caller', (input, context) => {
      reports.push(() => context.modelCall({ model: `model-${reports.length}`, started }));
      return tap.agent.run(input, context);
    });
    const { url } = await serve([caller]);
    const { page } = await visit(url);
    let asked = 0;
    page.on('request', (request) => {
      if (request.url().includes('/diagnostics')) asked += 1;
    });
    await say(page, 'caller', 'Go');
    await tap.started();
    await open(page, 'Models');
    const models = panel(page, 'Models');
    await models.getByText('No calls.').waitFor();
    const before = asked;
    reports[0]?.();
    tap.push('Hm. ');
    await models.getByText('model-1').waitFor();
    expect(asked).toBe(before + 1);
    tap.complete();
    await expect.poll(() => asked, soon).toBe(before + 2);
  });

  it('let a run be repeated from an event, from a tool and from its beginning', async () => {
    const { page, run_id } = await inspect([traveller]);
    const idShown = (): Promise<string | null> => page.locator('.inspector .id code').textContent();
    const log = panel(page, 'Events');
    await log.getByText('Take the train at 8:02.').click();
    await log.getByRole('button', { name: 'Run again from here' }).click();
    await expect.poll(idShown, soon).not.toBe(run_id);
    await page.locator('.inspector .badge', { hasText: 'completed' }).waitFor();
    await shows(page, 'Take the train at 8:02.');
    const second = await idShown();
    await open(page, 'Tools');
    await panel(page, 'Tools').getByRole('button', { name: 'Run again from here' }).click();
    await expect.poll(idShown, soon).not.toBe(second);
    const third = await idShown();
    await page.getByRole('button', { name: 'Repeat this run' }).click();
    await expect.poll(idShown, soon).not.toBe(third);
    await page.locator('.inspector .badge', { hasText: 'completed' }).waitFor();
  });

  it('say why a run cannot be repeated', async () => {
    const { url, post } = await serve([agent('plain', () => 'Hello.')]);
    const run = await (await post('/runs', ask('plain', 'Hi'))).json();
    const { page } = await visit(`${url}/#run=${run.run_id}`, {}, /409/);
    const log = panel(page, 'Events');
    await log.getByText('Hello.').click();
    await log.getByRole('button', { name: 'Run again from here' }).click();
    await log.getByText('agent plain is not durable').waitFor();
  });

  it.each([1_440, 390])('can be read and used with the keyboard, at %i pixels', async (width) => {
    const { page } = await inspect([traveller], width);
    await open(page, 'Events');
    const lines = page.getByRole('button', { name: 'Log lines' });
    await lines.press('Enter');
    await page.getByText('Only two trains.').waitFor();
    expect(await lines.evaluate((button) => button === document.activeElement)).toBe(true);
    expect(await violationsInBoth(page), 'log lines').toEqual([]);
    await picture(page, `details-lines-${width}`);
    await open(page, 'Events');
    for (const [index, tab] of tabs.entries()) {
      await expect.poll(() => page.getByRole('tab', { selected: true }).textContent(), soon).toBe(tab);
      if (tab === 'Models') {
        await page.getByText('gpt-large').waitFor();
        await page.locator('.model-calls summary').first().focus();
        await page.keyboard.press('Enter');
        await page.getByRole('region', { name: 'What it was told' }).waitFor();
      }
      if (tab === 'Tools') await page.locator('.tools summary').first().press('Enter');
      if (tab === 'Session') await page.getByText('"journeys": ').waitFor();
      expect(await violationsInBoth(page), tab).toEqual([]);
      await picture(page, `details-${tab}-${width}`);
      await page.emulateMedia({ colorScheme: 'dark' });
      await picture(page, `details-${tab}-${width}-dark`);
      await page.emulateMedia({ colorScheme: 'light' });
      const [has, wide] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      expect(has, tab).toBe(wide);
      if (index < tabs.length - 1) await page.getByRole('tab', { selected: true }).press('ArrowRight');
    }
  });
});
