import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { lexer } from 'marked';
import MiniSearch from 'minisearch';
import { describe, expect, it } from 'vitest';
import { pageHtml, rootOf } from '../../src/playground/guide/page-html.ts';
import { type GuidePage, headingsOf, pathOf, readGuide, sectionsOf } from '../../src/playground/guide/pages.ts';
import { find, indexOptions } from '../../src/playground/guide/search.ts';

const root = resolve(import.meta.dirname, '../..');
const groups = readGuide(root);
const pages = groups.flatMap((group) => group.pages);
const picture = (file: string) => ({ path: `assets/${file}`, width: 2, height: 1 });
const htmlOf = (page: GuidePage): string => pageHtml(page, { pages, picture });
const html = new Map(pages.map((page) => [pathOf(page), htmlOf(page)]));

/** The HTML of a page of the guide with this Markdown. */
const written = (markdown: string, file = 'docs/page.md'): string =>
  htmlOf({ file, name: 'page', label: 'Page', tokens: lexer(markdown) });

describe('the guide', () => {
  it('has README and every page of docs once, in the order of the list in README', () => {
    const docs = readdirSync(resolve(root, 'docs')).filter((name) => name.endsWith('.md'));
    expect(pages.map(({ file }) => file).toSorted()).toEqual(['README.md', ...docs.map((name) => `docs/${name}`)]);
    expect(pages.slice(0, 3).map(({ label }) => label)).toEqual(['Overview', 'Getting started', 'Write an agent']);
    expect(groups.map(({ label }) => label)).toContain('Run servers');
  });

  it('has a page and a heading for every link between pages', () => {
    const links = pages.flatMap((page) =>
      [...(html.get(pathOf(page)) ?? '').matchAll(/<a [^>]*?href="([^"]+)"/g)]
        .map(([, href = '']) => ({ from: pathOf(page), to: new URL(href, `http://guide/${pathOf(page)}`) }))
        .filter(({ to }) => to.host === 'guide'),
    );
    const broken = links.filter(({ to }) => {
      const target = html.get(to.pathname.slice(1));
      return (
        target === undefined || (to.hash !== '' && !target.includes(` id="${decodeURIComponent(to.hash.slice(1))}"`))
      );
    });
    expect(broken).toEqual([]);
    expect(links.length).toBeGreaterThan(500);
    expect(links.map(({ to }) => to.pathname + to.hash)).toContain('/docs/guide/rest-api#run-again-from-an-event');
  });

  it('names each heading of a page once', () => {
    for (const [path, text] of html) {
      const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
      expect(new Set(ids).size, path).toBe(ids.length);
    }
    const tokens = lexer('# A page\n\n## Keep keys in `.env`\n\n## Twice & more\n\n## Twice & more\n');
    expect(
      headingsOf({ file: 'docs/page.md', name: 'page', label: 'Page', tokens }).map(({ anchor }) => anchor),
    ).toEqual(['a-page', 'keep-keys-in-env', 'twice--more', 'twice--more-1']);
  });

  it('links to the page from every folder, and shows other files of the repository by their path', () => {
    expect(written('[ask](approvals.md#escalate)')).toContain('<a href="../../docs/guide/approvals#escalate">ask</a>');
    expect(written('[all](../README.md)')).toContain('<a href="../../docs/guide">all</a>');
    expect(written('[ask](docs/approvals.md)', 'README.md')).toContain('/docs/guide/approvals">ask</a>');
    expect(written('[the agent](../agents/chat.ts)')).toBe('<p>the agent (<code>agents/chat.ts</code>)</p>\n');
    expect(written('[`agents/chat.ts`](../agents/chat.ts)')).toBe('<p><code>agents/chat.ts</code></p>\n');
    expect(pages.slice(0, 2).map(rootOf)).toEqual(['../', '../../']);
  });

  it('shows code with colours, and tables; comments for the tests are left out', () => {
    const text = written(
      '<!-- say: Hi | expect: Hi -->\n\n```ts\nconst a = "<b>";\n```\n\n| A | B |\n| - | - |\n| `x` | y |\n',
    );
    expect(text).toContain(
      '<span class="hljs-keyword">const</span> a = <span class="hljs-string">&quot;&lt;b&gt;&quot;',
    );
    expect(text).toContain('<td><code>x</code></td><td>y</td>');
    expect([...html.values(), text].filter((one) => /<!--|&lt;!--|expect: /.test(one))).toEqual([]);
  });

  it('takes no tag, no attribute and no script from Markdown', () => {
    const hostile = [
      '<script>alert(1)</script>',
      'a <img src=x onerror=alert(1)> b',
      '<!-- a --><svg onload=alert(1)><!-- b',
      '<!--><script>alert(1)</script>-->',
      '[a](javascript:alert(1)) [b](JAVASCRIPT:alert(1)) [c](data:text/html,x) [d](//elsewhere/x) [e](vbscript:x)',
      '[a](https://x/"onclick="alert(1)) [b](#"onclick="alert(1) "t\\" onclick=alert(1)")',
      '[a](approvals.md#"onclick="alert(1))',
      '![a" onerror="alert(1)](https://elsewhere/x.png) ![a" onerror="alert(1)](images/x"onerror="y.png)',
      '```a"onclick="alert(1)\n</code><script>alert(1)</script>\n```',
      '# <b onclick=alert(1)>x</b> " onclick="alert(1)',
      '| <a onclick=alert(1)> |\n| - |\n| <script> |',
      '<javascript:alert(1)>',
    ];
    for (const markdown of hostile) {
      const text = written(markdown);
      const tags = [...text.matchAll(/<[^>]*>/g)].map(([tag]) => tag);
      const bare = tags.map((tag) => tag.replace(/"[^"]*"/g, '""'));
      expect(
        bare.filter(
          (tag) =>
            !/^<\/?[a-z]+\d?( (id|class|href|rel|role|src|alt|width|height|tabindex|aria-\w+)="")*( \/)?>$/.test(tag),
        ),
        markdown,
      ).toEqual([]);
      expect(
        tags.filter((tag) => /^<(script|svg|b)\b|(href|src)="(?!https?:|#|\.\.\/)/i.test(tag)),
        markdown,
      ).toEqual([]);
    }
  });
});

describe('the search of the guide', () => {
  const index = new MiniSearch(indexOptions);
  index.addAll(pages.flatMap(sectionsOf));
  const marked = (pieces: readonly { text: string; found: boolean }[]): string =>
    pieces.map(({ text, found }) => (found ? `[${text}]` : text)).join('');

  it('finds sections by heading first, also by the beginning of a word and with a mistake in it', () => {
    expect(find(index, 'run again from an event')[0]).toMatchObject({ id: 'rest-api#run-again-from-an-event' });
    expect(find(index, 'webho').map(({ page }) => page)).toContain('Webhooks');
    expect(find(index, 'aprovals')[0]?.page).toBe('Approvals');
    expect(find(index, 'OPENAI_API_KEY').length).toBeGreaterThan(0);
  });

  it('shows where the words are, in the part of the text that has most of them', () => {
    const [first] = find(index, 'idempotency key');
    expect(first).toBeDefined();
    expect(marked([...(first?.heading ?? []), ...(first?.excerpt ?? [])])).toMatch(/\[idempotency\][\s\S]*\[key\]/i);
    for (const { excerpt } of find(index, 'stream')) expect(marked(excerpt).length).toBeLessThan(260);
  });

  it('finds sections with some of the words where none has all, and none for no word', () => {
    expect(find(index, 'webhooks xyzzyqqq').length).toBeGreaterThan(0);
    expect([find(index, ''), find(index, '"(*'), find(index, 'xyzzyqqq')]).toEqual([[], [], []]);
  });
});
