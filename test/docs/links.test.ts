import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { pages, readPage, root } from './blocks.ts';

const withoutCode = (text: string): string => text.replace(/^```[\s\S]*?^```$/gm, '').replace(/<!--[\s\S]*?-->/g, '');

/** The anchors that GitHub makes of a page's headings. */
function anchorsOf(page: string): Set<string> {
  const headings = withoutCode(readFileSync(join(root, page), 'utf8')).matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\- _]/gu, '')
        .trim()
        .replaceAll(' ', '-'),
    ),
  );
}

const linksOf = (page: string): string[] =>
  [...withoutCode(readPage(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);

it.each([...pages, 'CHANGELOG.md', 'examples/README.md'])(
  '%s has links to files and headings that there are',
  (page) => {
    const broken = linksOf(page).filter((target) => {
      if (/^https?:/.test(target)) return false;
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : normalize(join(dirname(page), path));
      if (!existsSync(join(root, file))) return true;
      return anchor !== undefined && !anchorsOf(file).has(anchor);
    });
    expect(broken).toEqual([]);
  },
);

it('every page of docs is linked from the README', () => {
  const linked = linksOf('README.md').map((target) => target.split('#')[0]);
  expect(pages.filter((page) => page !== 'README.md' && !linked.includes(page))).toEqual([]);
});

it('every page of docs that names an agent of the package says how a project gets it', () => {
  const naming = pages.filter((page) => linksOf(page).some((target) => /^\.\.\/agents\/(echo|approve)/.test(target)));
  const copied = naming.filter((page) => linksOf(page).includes('getting-started.md#agents-to-copy'));
  expect(naming.length).toBeGreaterThan(10);
  expect(naming.filter((page) => !copied.includes(page))).toEqual(['docs/getting-started.md']);
});

it('the package has the pages, agents and examples that README and docs link to', () => {
  const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  expect(files).toEqual(expect.arrayContaining(['dist', 'docs', 'agents', 'examples', 'CHANGELOG.md']));
});
