import { fromMarkdown } from 'mdast-util-from-markdown';
import { toString as plainText } from 'mdast-util-to-string';
import { type MessagePart, textOf } from 'rivulet';

export interface Sentence {
  /** Verbatim, with line breaks. */
  readonly text: string;
  /** The heading above it. */
  readonly title?: string | undefined;
}
type Paragraph = Sentence;
type Node = ReturnType<typeof fromMarkdown>['children'][number];

const maxChars = 100_000; // of a part; the rest is ignored
const pieceSize = 2_000; // of Markdown, because the parser's time may grow with the square of its input

/** The paragraphs of a part, piece by piece. */
export function* read(part: MessagePart): Generator<Paragraph[]> {
  const { content_type = 'text/plain' } = part;
  if (!/^text\//i.test(content_type)) return;
  const text = textOf(part).slice(0, maxChars);
  if (!/^text\/markdown\b/i.test(content_type)) {
    yield text.split(/\n\s*\n/).map((paragraph) => ({ text: paragraph }));
    return;
  }
  let title: string | undefined;
  for (const piece of piecesOf(text)) {
    const tooLong = piece.length > 2 * pieceSize; // one very long line: its markup is not parsed
    const paragraphs = tooLong ? [{ text: piece, title }] : [...paragraphsOf(fromMarkdown(piece).children, title)];
    title = paragraphs.at(-1)?.title ?? title;
    yield paragraphs;
  }
}

const fencedCode = /^ {0,3}(`{3,}|~{3,})[\s\S]*?(^ {0,3}\1|(?![\s\S]))/gm;
const afterBlankLine = /(?<=\n[ \t\r]*\n)(?=\S)/;
const afterLine = /(?<=\n)(?=\S)/;

/** Markdown without fenced code, in pieces of whole blocks. A block that is too big is split between lines. */
function* piecesOf(markdown: string): Generator<string> {
  const blocks = markdown.replace(fencedCode, '').split(afterBlankLine);
  let piece = '';
  for (const some of blocks.flatMap((block) => (block.length > pieceSize ? block.split(afterLine) : block))) {
    if (piece !== '' && piece.length + some.length > pieceSize) {
      yield piece;
      piece = '';
    }
    piece += some;
  }
  yield piece;
}

/** Includes lists and quotes. Code and HTML have no children, so they are left out. */
function* paragraphsOf(nodes: readonly Node[], title?: string): Generator<Paragraph> {
  for (const node of nodes) {
    if (node.type === 'paragraph') yield { text: plainText(node), title };
    else if (node.type === 'heading') {
      title = plainText(node);
      yield { text: '', title }; // no sentence, but the heading of the next piece
    } else if ('children' in node) yield* paragraphsOf(node.children, title);
  }
}

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' });
const lineBreak = /[\r\n\u2028\u2029]/g;
const abbreviation = /(?<!\p{L})(\p{Lu}\p{Ll}{0,2}|e\.g|i\.e|vs|cf)\.\s*$/u;

export function* sentencesOf(paragraphs: readonly Paragraph[]): Generator<Sentence> {
  for (const { text, title } of paragraphs) {
    let start = 0;
    // In Unicode, a line break ends a sentence; in a paragraph it does not, and neither does "Dr.".
    for (const { index, segment } of segmenter.segment(text.replace(lineBreak, ' '))) {
      const end = index + segment.length;
      if (end < text.length && abbreviation.test(segment)) continue;
      const sentence = text.slice(start, end).trim();
      start = end;
      if (/[\p{L}\p{N}]/u.test(sentence)) yield { text: sentence, title };
    }
  }
}
