import type { MarkedToken, Token, Tokens } from 'marked';
import stringWidth from 'string-width';
import wrapAnsi from 'wrap-ansi';
import { decodeEntities, MarkdownReader } from '../../markdown/markdown-reader.ts';
import type { Style, Terminal } from './terminal.ts';

/** Prints the text of an answer as it grows. */
export interface Answer {
  add(text: string): void;
  /** Marks a citation of the text that ends at a position of the answer's text, or that was printed last. */
  mark(label: string, end: number | undefined): void;
  /** Prints what is not printed yet. More text begins a new line. */
  flush(): void;
}

/** Text as it comes: for a pipe, and for terminals without colours. */
export class PlainAnswer implements Answer {
  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  add(text: string): void {
    this.#terminal.answer(text);
  }

  mark(label: string): void {
    this.#terminal.mark(label);
  }

  flush(): void {}
}

/** Columns of text; longer lines are hard to read. */
const maxColumns = 100;

/**
 * Text as rendered Markdown. Blocks that are complete are final lines; the last ones are drawn again as they grow, so
 * they belong into a live area.
 */
export class MarkdownAnswer implements Answer {
  readonly #terminal: Terminal;
  readonly #indent: string;
  #reader = new MarkdownReader();
  /** The text since the last flush, with marks. */
  #source = '';
  /** Number of blocks of the source that are final lines. */
  #printed = 0;
  /** Characters of the answer's text before the source, and what was marked in it. */
  #before = 0;
  #marks: { readonly at: number; readonly length: number }[] = [];

  constructor(terminal: Terminal, indent = '') {
    this.#terminal = terminal;
    this.#indent = indent;
  }

  add(text: string): void {
    this.#source += text;
  }

  // In its place, unless that is a final line already; then the footnote alone names the text.
  mark(label: string, end: number | undefined): void {
    const text = ` ${label}`;
    const last = this.#source.trimEnd().length;
    const at = end === undefined ? last : Math.min(this.#positionOf(end), last);
    if (at <= this.#reader.complete.chars) return;
    this.#source = `${this.#source.slice(0, at)}${text}${this.#source.slice(at)}`;
    this.#marks.push({ at, length: text.length });
  }

  /** The lines that have become final since the last call. */
  final(columns: number): string[] {
    const tokens = this.#reader.read(this.#source);
    const { blocks } = this.#reader.complete;
    const lines = this.#spaced(tokens.slice(this.#printed, blocks), columns);
    this.#printed = Math.max(this.#printed, blocks);
    return lines;
  }

  /** The lines that may still change. */
  growing(columns: number): string[] {
    return this.#spaced(this.#reader.read(this.#source).slice(this.#printed), columns);
  }

  flush(): void {
    this.#terminal.painted(this.growing(this.#terminal.width));
    this.#before += this.#source.length - this.#marks.reduce((sum, { length }) => sum + length, 0);
    this.#reader = new MarkdownReader();
    this.#source = '';
    this.#marks = [];
    this.#printed = 0;
  }

  #positionOf(end: number): number {
    const plain = end - this.#before;
    return this.#marks.reduce((at, mark) => (mark.at < at ? at + mark.length : at), plain);
  }

  /** Lines, after a blank one if other blocks were printed. */
  #spaced(tokens: readonly Token[], columns: number): string[] {
    const width = Math.min(columns, maxColumns) - this.#indent.length;
    const lines = renderMarkdown(tokens, width, this.#terminal.paint).map((line) => `${this.#indent}${line}`);
    return this.#printed > 0 && lines.length > 0 ? ['', ...lines] : lines;
  }
}

/** Returns the text without control characters, with styles. */
export type Paint = (text: string, ...styles: Style[]) => string;

/**
 * Renders blocks of Markdown as lines of at most `width` columns, with a blank line between blocks. Texts of the agent
 * are only printed by `paint`. HTML and images are shown as their source text, and links with their target.
 */
export function renderMarkdown(tokens: readonly Token[], width: number, paint: Paint): string[] {
  const renderer = new Renderer(paint);
  return renderer.blocks(tokens, Math.max(width, minWidth));
}

/** Columns for the innermost of nested lists and quotes. */
const minWidth = 10;

const safeLink = /^(https?:|mailto:)/i;

class Renderer {
  readonly #paint: Paint;

  constructor(paint: Paint) {
    this.#paint = paint;
  }

  blocks(tokens: readonly Token[], width: number, isTight = false): string[] {
    const lines: string[] = [];
    let checkbox = '';
    for (const token of tokens as readonly MarkedToken[]) {
      // Stands before the text of its item.
      if (token.type === 'checkbox') checkbox = this.#span(token, []);
      else {
        const [first, ...rest] = this.#block(token, width);
        if (first === undefined) continue;
        if (lines.length > 0 && !isTight) lines.push('');
        lines.push(`${checkbox}${first}`, ...rest);
        checkbox = '';
      }
    }
    return lines;
  }

  #block(token: MarkedToken, width: number): string[] {
    switch (token.type) {
      case 'space':
      case 'def':
        return [];
      case 'heading':
        return wrap(this.#inline(token.tokens, token.depth <= 2 ? ['bold', 'underline'] : ['bold']), width);
      case 'paragraph':
        return wrap(this.#inline(token.tokens), width);
      case 'text':
        return wrap(this.#inline(token.tokens ?? [token]), width);
      case 'list':
        return this.#list(token, width);
      case 'blockquote':
        return indent(this.blocks(token.tokens, Math.max(width - 2, minWidth)), this.#paint('│ ', 'dim'));
      case 'code':
        return indent(
          token.text.split('\n').map((line) => this.#paint(line, 'cyan')),
          '  ',
        );
      case 'table':
        return this.#table(token, width);
      case 'hr':
        return [this.#paint('─'.repeat(Math.min(width, 40)), 'dim')];
      default:
        return wrap(this.#inline([token]), width);
    }
  }

  #list({ ordered, start, items, loose }: Tokens.List, width: number): string[] {
    const first = start === '' ? 1 : start;
    const bulletWidth = ordered ? `${first + items.length - 1}. `.length : 2;
    return items.flatMap((item, index) => {
      const bullet = (ordered ? `${first + index}. ` : '• ').padStart(bulletWidth);
      const lines = this.blocks(item.tokens, Math.max(width - bulletWidth, minWidth), !loose);
      const [head = '', ...rest] = lines;
      const separator = loose && index > 0 ? [''] : [];
      return [...separator, `${this.#paint(bullet, 'dim')}${head}`, ...indent(rest, ' '.repeat(bulletWidth))];
    });
  }

  #table({ header, rows, align }: Tokens.Table, width: number): string[] {
    const head = header.map(({ tokens }) => this.#inline(tokens, ['bold']));
    const body = rows.map((row) => row.map(({ tokens }) => this.#inline(tokens)));
    const widths = head.map((cell, at) =>
      Math.max(...[cell, ...body.map((row) => row[at] ?? '')].map((text) => stringWidth(text))),
    );
    const total = widths.reduce((sum, column) => sum + column + 2, -2);
    // A table that is too wide for columns: one line for each cell, below its heading.
    if (total > width) {
      return body.flatMap((row, index) => [
        ...(index > 0 ? [''] : []),
        ...row.flatMap((cell, at) => wrap(`${head[at] ?? ''}: ${cell}`, width)),
      ]);
    }
    const line = (cells: readonly string[]): string =>
      cells
        .map((cell, at) => {
          const space = ' '.repeat(Math.max((widths[at] ?? 0) - stringWidth(cell), 0));
          return align[at] === 'right' ? `${space}${cell}` : `${cell}${space}`;
        })
        .join('  ');
    return [line(head), this.#paint(widths.map((column) => '─'.repeat(column)).join('  '), 'dim'), ...body.map(line)];
  }

  #inline(tokens: readonly Token[], styles: readonly Style[] = []): string {
    return tokens.map((token) => this.#span(token as MarkedToken, styles)).join('');
  }

  #span(token: MarkedToken, styles: readonly Style[]): string {
    switch (token.type) {
      case 'strong':
        return this.#inline(token.tokens, [...styles, 'bold']);
      case 'em':
        return this.#inline(token.tokens, [...styles, 'italic']);
      case 'del':
        return this.#inline(token.tokens, [...styles, 'strikethrough']);
      case 'codespan':
        return this.#paint(token.text, ...styles, 'cyan');
      case 'br':
        return '\n';
      case 'checkbox':
        return this.#paint(token.checked ? '[x] ' : '[ ] ', ...styles);
      case 'link':
        return this.#link(token, styles);
      case 'text':
        return token.tokens === undefined
          ? this.#paint(decodeEntities(token.raw), ...styles)
          : this.#inline(token.tokens, styles);
      case 'escape':
        return this.#paint(token.text, ...styles);
      default:
        return this.#paint(decodeEntities(token.raw), ...styles);
    }
  }

  // The target is always shown: the text of a link may name another one.
  #link({ href, text, tokens, raw }: Tokens.Link, styles: readonly Style[]): string {
    if (!safeLink.test(href)) return this.#paint(raw, ...styles);
    if (text === href || `mailto:${text}` === href) return this.#paint(text, ...styles, 'underline');
    return `${this.#inline(tokens, [...styles, 'underline'])}${this.#paint(` (${href})`, 'dim')}`;
  }
}

const wrap = (text: string, width: number): string[] => wrapAnsi(text, width, { hard: true, trim: true }).split('\n');

const indent = (lines: readonly string[], by: string): string[] => lines.map((line) => `${by}${line}`);
