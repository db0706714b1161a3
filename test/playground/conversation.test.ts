import { expect, it } from 'vitest';
import echo from '../../agents/echo.ts';
import { serve } from '../support/serve.ts';
import { inPlayground, say, shows, visit } from './browser.ts';

// The other tests of the page are in *.browser.ts.
inPlayground('a conversation', () => {
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
});
