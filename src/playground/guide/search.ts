import MiniSearch, { type Options, type SearchResult } from 'minisearch';

/** What a search finds. */
export interface Section {
  /** The page and the anchor, such as `approvals#escalate`; of the first section of a page `approvals#`. */
  readonly id: string;
  readonly page: string;
  readonly heading: string;
  readonly text: string;
}

/** How the build makes the index and the browser searches it. The words of code are its letters and digits. */
export const indexOptions: Options<Section> = {
  fields: ['page', 'heading', 'text'],
  storeFields: ['page', 'heading', 'text'],
  tokenize: (text) => text.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== ''),
  searchOptions: {
    boost: { heading: 4, page: 2 },
    prefix: true,
    fuzzy: (word) => (word.length > 4 ? 0.2 : false),
  },
};

/** Found sections that are shown. */
const maxFound = 20;
/** Characters of a section's text that are shown, and how many of them stand before the found word. */
const maxExcerpt = 180;
const before = 50;

/** A part of a text, and whether it is a found word. */
export interface Piece {
  readonly text: string;
  readonly found: boolean;
}

export interface Found {
  readonly id: string;
  readonly page: string;
  readonly heading: readonly Piece[];
  readonly excerpt: readonly Piece[];
}

/** Loads the index that the build has made. */
export async function loadIndex(url: string): Promise<MiniSearch<Section>> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return MiniSearch.loadJSON(await response.text(), indexOptions);
}

/** The sections that have all words of the query or, where there is none, some of them; the best first. */
export function find(index: MiniSearch<Section>, query: string): readonly Found[] {
  const all = index.search(query, { combineWith: 'AND' });
  return (all.length > 0 ? all : index.search(query)).slice(0, maxFound).map(shown);
}

// The index keeps the fields of `Section` with each result, for which the library has no type.
function shown({ id, terms, page, heading, text }: SearchResult): Found {
  // Words have only letters and digits, so they need no escape. A longer word is found before one that begins it.
  const words = terms.toSorted((a, b) => b.length - a.length).join('|');
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${words})(?![\\p{L}\\p{N}])`, 'giu');
  return { id, page, heading: split(heading, pattern), excerpt: split(excerptOf(text, pattern), pattern) };
}

/** The part of a text that has the most of the found words. */
function excerptOf(text: string, pattern: RegExp): string {
  const found = [...text.matchAll(pattern)].map(({ 0: word, index }) => ({ word: word.toLowerCase(), at: index }));
  let [best, most] = [0, 0];
  for (const { at } of found) {
    const words = new Set(
      found.filter((one) => one.at >= at && one.at < at + maxExcerpt - before).map((one) => one.word),
    );
    if (words.size > most) [best, most] = [at, words.size];
  }
  const start = best <= before ? 0 : text.lastIndexOf(' ', best - before) + 1;
  const rest = text.slice(start);
  const end = rest.length <= maxExcerpt ? rest.length : rest.lastIndexOf(' ', maxExcerpt);
  return `${start > 0 ? '… ' : ''}${rest.slice(0, end > 0 ? end : maxExcerpt)}${end < rest.length ? ' …' : ''}`;
}

function split(text: string, pattern: RegExp): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(pattern)) {
    pieces.push({ text: text.slice(end, index), found: false }, { text: word, found: true });
    end = index + word.length;
  }
  return [...pieces, { text: text.slice(end), found: false }];
}
