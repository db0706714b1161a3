import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import MiniSearch from 'minisearch';
import type { Plugin } from 'vite';
import { escapeHtml, type Picture, pageHtml, rootOf } from './page-html.ts';
import { type GuidePage, headingsOf, pathOf, readGuide, sectionsOf } from './pages.ts';
import { indexOptions } from './search.ts';

const template = 'guide.html';

/**
 * Builds the pages of `/docs/guide` from README.md and `docs/*.md`. The template is a page of the build, which gives it
 * the names of its files; each page of the guide is a copy of it in `guide/`. The index of the search is made here,
 * because a phone would need a second for it.
 */
export function guide(root: string): Plugin {
  const groups = readGuide(root);
  const pages = groups.flatMap((group) => group.pages);
  return {
    name: 'guide',
    apply: 'build',
    generateBundle: {
      // After Vite's own plugin, which makes the HTML.
      order: 'post',
      handler(_options, bundle) {
        const built = bundle[template];
        if (built?.type !== 'asset') throw new Error(`the build has no ${template}: add it to the input`);
        const html = String(built.source);
        delete bundle[template];
        const picture = (file: string): Picture => {
          const source = readFileSync(join(root, file));
          const name = this.getFileName(this.emitFile({ type: 'asset', name: basename(file), source }));
          return { path: name, ...sizeOf(source, file) };
        };
        const index = new MiniSearch(indexOptions);
        index.addAll(pages.flatMap(sectionsOf));
        const source = JSON.stringify(index);
        const indexName = this.getFileName(this.emitFile({ type: 'asset', name: 'guide-index.json', source }));
        for (const page of pages) {
          const parts: Readonly<Record<string, string>> = {
            title: escapeHtml(titleOf(page)),
            root: rootOf(page),
            index: rootOf(page) + indexName,
            pages: groups.map(({ label, pages }) => groupHtml(label, pages, page)).join('\n'),
            text: pageHtml(page, { pages, picture }),
          };
          const source = html
            .replaceAll('"./', `"${rootOf(page)}`)
            .replace(/\{\{(title|root|index|pages|text)\}\}/g, (_all, part: string) => parts[part] ?? '');
          this.emitFile({ type: 'asset', fileName: `guide/${page.name || 'overview'}.html`, source });
        }
      },
    },
  };
}

function titleOf(page: GuidePage): string {
  const [first] = headingsOf(page);
  return page.name === '' || first === undefined ? 'Rivulet guide' : `${first.text} · Rivulet guide`;
}

/** A group of the list of pages. The shown page has a list of its sections. */
function groupHtml(label: string, pages: readonly GuidePage[], shown: GuidePage): string {
  const items = pages.map((page) => {
    const current = page === shown ? ' aria-current="page"' : '';
    const link = `<a href="${rootOf(shown)}${pathOf(page)}"${current}>${escapeHtml(page.label)}</a>`;
    return `<li>${link}${page === shown ? contentsHtml(page) : ''}</li>`;
  });
  return `<p>${escapeHtml(label)}</p>\n<ul aria-label="${escapeHtml(label)}">${items.join('')}</ul>`;
}

function contentsHtml(page: GuidePage): string {
  const items = headingsOf(page)
    .filter(({ depth }) => depth === 2)
    .map(({ anchor, text }) => `<li><a href="#${escapeHtml(anchor)}">${escapeHtml(text)}</a></li>`);
  return items.length === 0 ? '' : `<ul aria-label="On this page">${items.join('')}</ul>`;
}

/** The size of a PNG picture, so that the text below does not move when it is loaded. */
function sizeOf(png: Buffer, file: string): { readonly width: number; readonly height: number } {
  if (png.toString('latin1', 12, 16) !== 'IHDR') throw new Error(`${file} is not a PNG picture`);
  return { width: png.readUInt32BE(16), height: png.readUInt32BE(20) };
}
