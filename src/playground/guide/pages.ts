import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { lexer, type MarkedToken, type Token, type Tokens, type TokensList } from 'marked';
import type { Section } from './search.ts';

/** A page of the guide: one Markdown file. */
export interface GuidePage {
  /** Its file in the repository, such as `docs/approvals.md`. */
  readonly file: string;
  /** The last part of its URL; empty for the first page. */
  readonly name: string;
  /** Its name in the list of pages. */
  readonly label: string;
  readonly tokens: TokensList;
}

interface PageGroup {
  readonly label: string;
  readonly pages: readonly GuidePage[];
}

/** The URL of a page, relative to the prefix of the server. */
export const pathOf = ({ name }: GuidePage): string => (name === '' ? 'docs/guide' : `docs/guide/${name}`);

/** The file that a link of a page names; undefined for a link to another server. */
export const linkedFile = (from: string, target: string): string | undefined =>
  /^([a-z][a-z\d+.-]*:|\/)/i.test(target) ? undefined : posix.join(posix.dirname(from), target);

/** The list of pages: README's table below "Documentation" has their order, groups and names. README is the first page. */
export function readGuide(root: string): readonly PageGroup[] {
  const read = (file: string): TokensList => lexer(readFileSync(join(root, file), 'utf8'), { gfm: true });
  const readme = read('README.md');
  const groups = tableOf(readme).rows.map(([group, list]) => ({
    label: group?.text ?? '',
    pages: linksIn(list?.tokens ?? [])
      .filter(({ href }) => /^docs\/[\w-]+\.md$/.test(href))
      .map(({ href, text }) => ({ file: href, name: posix.basename(href, '.md'), label: text, tokens: read(href) })),
  }));
  const listed = groups.flatMap(({ pages }) => pages.map(({ file }) => file));
  const missing = readdirSync(join(root, 'docs'))
    .map((name) => `docs/${name}`)
    .filter((file) => file.endsWith('.md') && !listed.includes(file));
  if (missing.length > 0) throw new Error(`README.md lists no ${missing.join(', ')}: add it below "Documentation"`);
  const first = { file: 'README.md', name: '', label: 'Overview', tokens: readme };
  return groups
    .filter(({ pages }) => pages.length > 0)
    .map(({ label, pages }, at) => ({ label, pages: at === 0 ? [first, ...pages] : pages }));
}

function tableOf(readme: TokensList): Tokens.Table {
  // Without extensions, the lexer makes no other tokens.
  const tokens = readme as MarkedToken[];
  const heading = tokens.findIndex((token) => token.type === 'heading' && token.text === 'Documentation');
  const table = tokens.slice(heading).find((token) => token.type === 'table');
  if (heading === -1 || table === undefined) throw new Error('README.md has no table below a heading "Documentation"');
  return table;
}

const linksIn = (tokens: readonly Token[]): Tokens.Link[] =>
  (tokens as readonly MarkedToken[]).filter((token) => token.type === 'link');

/** The text that a reader sees, without its Markdown. */
export function textOf(tokens: readonly Token[]): string {
  return (tokens as readonly MarkedToken[]).map(textOfOne).join('');
}

function textOfOne(token: MarkedToken): string {
  switch (token.type) {
    case 'html':
    case 'def':
      return '';
    case 'table':
      return [token.header, ...token.rows].map((row) => row.map((cell) => textOf(cell.tokens)).join(' · ')).join('\n');
    case 'list':
      return token.items.map((item) => textOf(item.tokens)).join('\n');
    case 'br':
    case 'space':
    case 'hr':
      return '\n';
    default:
      return 'tokens' in token && token.tokens !== undefined ? textOf(token.tokens) : 'text' in token ? token.text : '';
  }
}

/** Names the headings of one page as GitHub does. */
export class Anchors {
  readonly #used = new Map<string, number>();

  next(heading: string): string {
    const anchor = heading
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\- _]/gu, '')
      .replaceAll(' ', '-');
    const used = this.#used.get(anchor) ?? 0;
    this.#used.set(anchor, used + 1);
    return used === 0 ? anchor : `${anchor}-${used}`;
  }
}

export interface Heading {
  readonly depth: number;
  readonly anchor: string;
  readonly text: string;
}

interface HeadedText {
  readonly heading: Heading;
  /** The text up to the next heading. */
  readonly text: string;
}

function headedTexts({ tokens }: GuidePage): readonly HeadedText[] {
  const anchors = new Anchors();
  const parts: { readonly heading: Heading; text: string }[] = [];
  for (const token of tokens as MarkedToken[]) {
    const part = parts.at(-1);
    if (token.type === 'heading') {
      const text = textOf(token.tokens ?? []);
      parts.push({ heading: { depth: token.depth, anchor: anchors.next(text), text }, text: '' });
    } else if (part !== undefined) {
      part.text += `${textOfOne(token)}\n`;
    }
  }
  return parts;
}

export const headingsOf = (page: GuidePage): readonly Heading[] => headedTexts(page).map(({ heading }) => heading);

/** What a search finds of a page: each heading with its text. */
export const sectionsOf = (page: GuidePage): readonly Section[] =>
  headedTexts(page).map(({ heading, text }) => ({
    id: `${page.name}#${heading.depth === 1 ? '' : heading.anchor}`,
    page: page.label,
    heading: heading.text,
    text: text.replace(/\s+/g, ' ').trim(),
  }));
