import { catchError, concat, of, ReplaySubject, throwError } from 'rxjs';
import { expect, it } from 'vitest';
import { type AgentOutput, progress, trajectory } from '../../src/index.ts';
import { agent } from '../support/agents.ts';
import { serve } from '../support/serve.ts';
import { violationsInBoth } from './axe.ts';
import { enter, inPlayground, picture, say, shows, visit } from './browser.ts';

inPlayground('the steps of a run', () => {
  it.each([
    ['a desktop', { width: 1440, height: 900 }],
    ['a phone', { width: 390, height: 844 }],
  ])('are shown in their order while they happen, above the answer that they precede, on %s', async (name, look) => {
    const output = new ReplaySubject<AgentOutput>();
    const { url } = await serve([agent('worker', () => output)]);
    const { page } = await visit(url, look);
    await page.goto(`${url}/#agent=worker`);
    const box = page.getByRole('textbox', { name: 'Message to worker' });
    await enter(box, 'Go');
    await page.getByText('worker is working…').waitFor();
    const row = (text: string) => page.locator('.steps li', { hasText: text });
    const running = page.locator('.state[data-state="running"]');

    output.next(progress('Reading', { done: 1, total: 4 }));
    await row('Reading').locator('.state[data-state="running"]').waitFor();
    output.next(progress('Reading', { done: 3, total: 4 }));
    await row('3/4').getByRole('progressbar', { name: 'Reading' }).waitFor();
    expect(await page.getByRole('progressbar').evaluate((bar: HTMLProgressElement) => bar.value)).toBe(3);

    output.next(trajectory({ message: 'Searching', tool_name: 'search', tool_input: { query: 'rivers' } }));
    await row('Searching').locator('.state[data-state="running"]').waitFor();
    // What came before is done, and shows its time.
    await row('Reading').locator('.state[data-state="done"]').waitFor();
    await row('Reading').locator('.time').waitFor();
    output.next(trajectory({ message: 'Searched', tool_name: 'search', tool_output: { hits: 3 } }));
    await row('Searched').locator('.state[data-state="done"]').waitFor();
    await row('Searched').locator('.time').waitFor();
    expect(await running.count()).toBe(0);

    output.next({ type: 'generic', generic: { kind: 'cache', hit: true } });
    await row('cache').getByText('"hit":true').waitFor();
    output.next('The answer.\n\n');
    await shows(page, 'The answer.');
    output.next(trajectory({ message: 'Checked it' }));
    output.next('The end.');
    await shows(page, 'The end.');
    const flow = await page
      .locator('.message:not(.user), .turn > .steps')
      .evaluateAll((elements) =>
        elements.flatMap((element) => [...element.querySelectorAll('.what, .prose > p')].map((one) => one.textContent)),
      );
    expect(flow).toEqual(['Reading', 'Searched', '"hit":true', 'The answer.', 'Checked it', 'The end.']);

    // Input and output can be folded.
    await row('Searched').locator('summary.step').click();
    await row('Searched').getByText('rivers').waitFor();
    await row('Searched').getByText('3', { exact: true }).waitFor();
    expect(await violationsInBoth(page)).toEqual([]);
    await picture(page, `steps-${name}`);
    output.complete();
    await page.locator('.turn .badge', { hasText: 'completed' }).waitFor();
  });

  it('do not cut a paragraph that an event came into', async () => {
    const output = new ReplaySubject<AgentOutput>();
    const { url } = await serve([agent('worker', () => output)]);
    const { page } = await visit(url);
    await say(page, 'worker', 'Go');
    await page.getByText('worker is working…').waitFor();
    output.next('One sent');
    output.next({ type: 'generic', generic: { kind: 'usage', tokens: 2 } });
    output.next('ence.\n\nAnother one.');
    await shows(page, 'Another one.');
    expect(await page.locator('.prose > p').allInnerTexts()).toEqual(['One sentence.', 'Another one.']);
    expect(await page.locator('.prose > *').evaluateAll((all) => all.map(({ tagName }) => tagName))).toEqual([
      'P',
      'OL',
      'P',
    ]);
    output.complete();
    await page.locator('.turn .badge', { hasText: 'completed' }).waitFor();
  });

  it.each([
    ['a desktop', { width: 1440, height: 900 }],
    ['a phone', { width: 390, height: 844 }],
  ])('have called agents as a tree with their times, also after a reload, on %s', async (name, look) => {
    const output = new ReplaySubject<AgentOutput>();
    const expert = agent('expert', () => output);
    const broken = agent('broken', () => throwError(() => new Error('no luck')));
    const team = agent('team', (_, context) =>
      concat(context.call('expert', 'Go'), context.call('broken', 'Go').pipe(catchError(() => of('Well.')))),
    );
    const lead = agent('lead', (_, context) => context.call('team', 'Go'));
    const { url } = await serve([lead, team, expert, broken]);
    const { page } = await visit(url, look);
    await page.goto(`${url}/#agent=lead`);
    const box = page.getByRole('textbox', { name: 'Message to lead' });
    await enter(box, 'Go');
    const call = (called: string) => page.locator('.step.call', { has: page.getByText(called, { exact: true }) });
    await call('team').locator('.state[data-state="running"]').waitFor();
    await call('expert').locator('.state[data-state="running"]').waitFor();
    const left = async (called: string) => (await call(called).locator('code').boundingBox())?.x ?? 0;
    expect(await left('expert')).toBeGreaterThan(await left('team'));
    output.next('The answer. ');
    output.complete();
    await shows(page, 'Well.');
    for (const reload of [false, true]) {
      if (reload) await page.reload();
      await call('expert').locator('.state[data-state="done"]').waitFor();
      await call('expert').locator('.time').waitFor();
      await call('team').locator('.state[data-state="done"]').waitFor();
      await call('broken').locator('.state[data-state="failed"]').waitFor();
    }
    expect(await violationsInBoth(page)).toEqual([]);
    await picture(page, `calls-${name}`);
  });
});
