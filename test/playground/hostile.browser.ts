import { concat, ignoreElements, of } from 'rxjs';
import { expect, it } from 'vitest';
import echo from '../../agents/echo.ts';
import { AgentError, type MessagePart } from '../../src/index.ts';
import { agent } from '../support/agents.ts';
import { serve } from '../support/serve.ts';
import { enter, inPlayground, picture, say, shows, visit } from './browser.ts';

const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="80" height="40"><rect width="80" height="40" fill="#136a7b"/>
<script>document.documentElement.setAttribute('data-ran', location.origin)</script></svg>`;
const drawing: MessagePart = { name: 'drawing.svg', content_type: 'image/svg+xml', content: svg };
const draws = agent('draws', () => [drawing]);
const deep = agent('deep', () => `${'>'.repeat(3_000)} down here`);
const starry = agent('starry', () => '*a_'.repeat(5_000));
const long = 'w'.repeat(400);
const wide = agent('wide', (_, context) =>
  concat(
    of(
      `${long}\n\n\`\`\`js\nconst ${long} = 1;\n\`\`\`\n\n\`\`\`${long}\nhi\n\`\`\`\n\n| a | b |\n| - | - |\n| ${long} | ${long} |\n`,
    ),
    context
      .await(long, { schema: { type: 'object', description: long, properties: { [long]: { type: 'string' } } } })
      .pipe(ignoreElements()),
  ),
);
const cells = (...words: string[]): string => `| ${words.join(' | ')} |\n`;
const table = agent('table', () =>
  [
    cells('Wasserstand', 'Durchflussmenge', 'Temperatur', 'Messstelle', 'Niederschlag'),
    cells('-', '-', '-', '-', '-'),
    cells('zweihundertdrei', 'achthundert', 'vierzehn', 'Bodensee', 'geringfügig'),
  ].join(''),
);
const refuses = agent('refuses', () => {
  throw new AgentError('server_error', 'The shop is shut.', { reason: 'too_late' });
});

inPlayground('a hostile agent', () => {
  it('has its SVG shown as an image, where no script runs, and saved as a file', async () => {
    const { url } = await serve([draws]);
    const { page, context } = await visit(url);
    await say(page, 'draws', 'Go');
    const shown = page.getByRole('img', { name: 'drawing.svg' });
    await shown.waitFor();
    expect(await shown.evaluate((img: HTMLImageElement) => img.decode().then(() => img.naturalWidth))).toBe(80);
    expect(await shown.getAttribute('src')).toMatch(/^data:image\/svg\+xml/);
    await picture(page, 'svg');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Save drawing.svg' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('drawing.svg');
    expect(context.pages()).toHaveLength(1);
  });

  it.each(['deep', 'starry'])('%s neither blocks the page nor affects another conversation', async (name) => {
    const { url } = await serve([echo, deep, starry]);
    const { page } = await visit(url);
    await say(page, name, 'Go');
    await page.locator('.turn .badge', { hasText: 'completed' }).waitFor();
    await shows(page, name === 'deep' ? /down here/ : /^\*a_\*a_/);
    await picture(page, name);
    await say(page, 'echo', 'Good *day*');
    await page.locator('.prose em', { hasText: 'day' }).waitFor();
  });

  it('has long words, lines of code, tables and names of fields shown within the column', async () => {
    const { url } = await serve([wide]);
    const { page } = await visit(url);
    await say(page, 'wide', 'Go');
    await page.getByRole('button', { name: 'Answer', exact: true }).waitFor();
    const cut = await page.locator('.column').evaluate((column) => {
      const { right } = column.getBoundingClientRect();
      // Code and tables scroll in boxes of their own.
      const shown = [...column.querySelectorAll('*')].filter(
        (element) => element.parentElement?.closest('.code, .wide') === null,
      );
      return shown
        .filter((element) => element.getBoundingClientRect().right > right + 1)
        .map(({ className }) => className);
    });
    expect(cut).toEqual([]);
    await picture(page, 'wide');
  });

  it('has a wide table that scrolls on a phone, and breaks no word', async () => {
    const { url } = await serve([table]);
    const { page } = await visit(`${url}/#agent=table`, { width: 390, height: 844 });
    const box = page.getByRole('textbox', { name: 'Message to table' });
    await enter(box, 'Go');
    const shown = page.getByRole('region', { name: 'Table', exact: true });
    await shown.getByText('Bodensee').waitFor();
    const { scrolls, lines } = await shown.evaluate((scroller) => ({
      scrolls: scroller.scrollWidth > scroller.clientWidth,
      lines: [...scroller.querySelectorAll('th, td')].map((cell) => {
        const words = document.createRange();
        words.selectNodeContents(cell);
        return words.getClientRects().length;
      }),
    }));
    expect(scrolls).toBe(true);
    expect(new Set(lines)).toEqual(new Set([1]));
    await picture(page, 'table-phone');
  });

  it('has the reason of its failure shown', async () => {
    const { url } = await serve([refuses]);
    const { page } = await visit(url);
    await say(page, 'refuses', 'Go');
    await page.locator('.turn .problem code', { hasText: 'too_late' }).waitFor();
    await shows(page, 'The shop is shut.');
    await picture(page, 'refused');
  });
});
