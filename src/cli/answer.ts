import type { Token } from 'marked';
import { MarkdownReader } from '../markdown/markdown-reader.ts';
import { renderMarkdown } from './markdown.ts';
import type { Terminal } from './terminal.ts';

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
