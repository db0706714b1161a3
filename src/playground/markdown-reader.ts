import { Lexer, type MarkedOptions, type Token, type TokensList } from 'marked';

/** Levels of quotes and lists, and of emphasis, that are read; what is deeper is text. */
const deepest = 16;
/** Characters of one paragraph, cell or item that are read as Markdown; a longer one is text. */
const longest = 20_000;
/** Signs of Markdown in one of them: the time to read emphasis grows with their square. */
const mostSigns = 1_000;
const sign = /[*_~[\]`<!]/g;
/** Characters of one block, or of blocks that the end of the text may still change. */
const longestTail = 200_000;

const options: MarkedOptions = { gfm: true, breaks: true };

const textOf = (raw: string): Token => ({ type: 'text', raw, text: raw });
const paragraphOf = (raw: string): Token => ({ type: 'paragraph', raw, text: raw, tokens: [textOf(raw)] });

/** The library's lexer with bounds: no text may overflow the stack, or stop the page for seconds. */
class BoundedLexer extends Lexer {
  #blocks = 0;
  #inlines = 0;

  override blockTokens(src: string, tokens?: Token[], lastParagraphClipped?: boolean): Token[];
  override blockTokens(src: string, tokens?: TokensList, lastParagraphClipped?: boolean): TokensList;
  override blockTokens(src: string, tokens: Token[] = [], lastParagraphClipped?: boolean): Token[] {
    if (this.#blocks >= deepest) {
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
    if (this.#inlines >= deepest || src.length > longest || (src.match(sign)?.length ?? 0) > mostSigns) {
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
 * Reads the Markdown of an answer that grows: blocks that its end cannot change any more are not read again, so that a
 * token costs as much as the last blocks are long.
 */
export class MarkdownReader {
  #settled = '';
  #tokens: readonly Token[] = [];
  /** Of `[name]: address`, for the blocks that follow. */
  #links: TokensList['links'] = {};

  /** The blocks of the text. One that cannot be read is a paragraph of text. */
  read(given: string): readonly Token[] {
    // As the lexer has line ends.
    const text = given.includes('\r') ? given.replace(/\r\n?/g, '\n') : given;
    if (!text.startsWith(this.#settled)) {
      this.#settled = '';
      this.#tokens = [];
      this.#links = {};
    }
    const tail = text.slice(this.#settled.length);
    const blocks = this.#lex(tail);
    const all = [...this.#tokens, ...blocks];
    this.#settle(tail, blocks);
    return all;
  }

  #lex(tail: string): readonly Token[] {
    if (tail.length > longestTail) return [paragraphOf(tail)];
    try {
      const lexer = new BoundedLexer(options);
      Object.assign(lexer.tokens.links, this.#links);
      return lexer.lex(tail);
    } catch {
      return [paragraphOf(tail)];
    }
  }

  // The last block grows, and the one before it may become a part of it, such as a list before a blank line.
  #settle(tail: string, blocks: readonly Token[]): void {
    const full = blocks.flatMap(({ type }, at) => (type === 'space' ? [] : [at]));
    const settled = blocks.slice(0, full.at(-2) ?? 0);
    const raw = settled.map((block) => block.raw).join('');
    if (raw === '' || !tail.startsWith(raw)) return;
    this.#settled += raw;
    this.#tokens = [...this.#tokens, ...settled];
    for (const block of settled) {
      if (block.type === 'def') this.#links[block.tag] = { href: block.href, title: block.title };
    }
  }
}
