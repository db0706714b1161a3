import { expect, it } from 'vitest';
import echo from '../../agents/echo.ts';
import { serve } from '../support/serve.ts';
import { inPlayground, say, shows, visit } from './browser.ts';

// More tests of the page are in *.browser.ts.
inPlayground('a conversation', () => {
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
});
