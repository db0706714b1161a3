import type { MarkedToken, Token } from 'marked';
import type { GuidePage } from './page-list.ts';
import type { Section } from './section-index.ts';

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
