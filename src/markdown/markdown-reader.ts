import { Lexer, type MarkedOptions, type Token, type TokensList } from 'marked';

/** Levels of quotes and lists, and of emphasis, that are parsed; deeper ones are text. */
const maxDepth = 16;
/** Characters of one paragraph, cell or item; a longer one is not parsed. */
const maxInline = 20_000;
/** Markdown characters in one of them: the time to parse emphasis grows with their square. */
const maxMarkup = 1_000;
const markup = /[*_~[\]`<!]/g;
/** Characters of the blocks that more text may still change. */
const maxTail = 200_000;

const options: MarkedOptions = { gfm: true, breaks: true };

const textOf = (raw: string): Token => ({ type: 'text', raw, text: raw });
const paragraphOf = (raw: string): Token => ({ type: 'paragraph', raw, text: raw, tokens: [textOf(raw)] });

/** The library's lexer with limits, so that no text overflows the stack or blocks the page for seconds. */
class BoundedLexer extends Lexer {
  #blocks = 0;
  #inlines = 0;

  override blockTokens(src: string, tokens?: Token[], lastParagraphClipped?: boolean): Token[];
  override blockTokens(src: string, tokens?: TokensList, lastParagraphClipped?: boolean): TokensList;
  override blockTokens(src: string, tokens: Token[] = [], lastParagraphClipped?: boolean): Token[] {
    if (this.#blocks >= maxDepth) {
      tokens.push(paragraphOf(src));
      return tokens;
    }
    this.#blocks += 1;
    try {
      return super.blockTokens(src, tokens, lastParagraphClipped);
    } finally {
      this.#blocks -= 1;
    }
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    if (this.#inlines >= maxDepth || src.length > maxInline || (src.match(markup)?.length ?? 0) > maxMarkup) {
      tokens.push(textOf(src));
      return tokens;
    }
    this.#inlines += 1;
    try {
      return super.inlineTokens(src, tokens);
    } finally {
      this.#inlines -= 1;
    }
  }
}

/**
 * Parses Markdown that grows. Blocks that more text cannot change are not parsed again, so a token costs as much as the
 * last blocks are long.
 */
export class MarkdownReader {
  #parsed = '';
  #tokens: readonly Token[] = [];
  /** Definitions `[name]: URL`, for the following blocks. */
  #links: TokensList['links'] = {};

  /** The number of blocks that more text cannot change, and of the characters that they take. */
  get complete(): { readonly blocks: number; readonly chars: number } {
    return { blocks: this.#tokens.length, chars: this.#parsed.length };
  }

  /** The blocks of the text. If parsing fails, a paragraph of text. */
  read(source: string): readonly Token[] {
    // The lexer's line ends.
    const text = source.includes('\r') ? source.replace(/\r\n?/g, '\n') : source;
    if (!text.startsWith(this.#parsed)) {
      this.#parsed = '';
      this.#tokens = [];
      this.#links = {};
    }
    const tail = text.slice(this.#parsed.length);
    const blocks = this.#lex(tail);
    const all = [...this.#tokens, ...blocks];
    this.#keep(tail, blocks);
    return all;
  }

  #lex(tail: string): readonly Token[] {
    if (tail.length > maxTail) return [paragraphOf(tail)];
    try {
      const lexer = new BoundedLexer(options);
      Object.assign(lexer.tokens.links, this.#links);
      return lexer.lex(tail);
    } catch {
      return [paragraphOf(tail)];
    }
  }

  // More text can change the last block and merge the one before it, for example a list after a blank line.
  #keep(tail: string, blocks: readonly Token[]): void {
    const visible = blocks.flatMap(({ type }, index) => (type === 'space' ? [] : [index]));
    const complete = blocks.slice(0, visible.at(-2) ?? 0);
    const raw = complete.map((block) => block.raw).join('');
    if (raw === '' || !tail.startsWith(raw)) return;
    this.#parsed += raw;
    this.#tokens = [...this.#tokens, ...complete];
    for (const block of complete) {
      if (block.type === 'def') this.#links[block.tag] = { href: block.href, title: block.title };
    }
  }
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  '#39': "'",
  nbsp: '\u00a0',
};

/** The text with the entities that models write decoded. */
export const decodeEntities = (text: string): string =>
  text.includes('&')
    ? text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (all, name: string) => entities[name] ?? all)
    : text;
