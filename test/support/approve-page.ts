import type { Page } from 'playwright-core';
import { expect } from 'vitest';

/** Uses a page of the agent `approve`: two messages of one session, with a reply to the first question. */
export async function useApprovePage(page: Page, base: string): Promise<void> {
  const say = async (text: string): Promise<void> => {
    // The React page has a form for the reply before that for the next message.
    const input = page.locator('input').first();
    await input.fill(text);
    await input.press('Enter');
  };
  await say('dance');
  await page.getByText('I am about to do this: dance').waitFor();
  await page.getByText('Shall I?').waitFor();
  await say('yes');
  await page.getByText('Done: dance').waitFor();
  // The next message creates another run of the same session.
  await say('sing');
  await page.getByText('I am about to do this: sing').waitFor();
  const { runs } = await (await fetch(`${base}runs?limit=2`)).json();
  expect(runs[0].session_id).toBe(runs[1].session_id);
}
