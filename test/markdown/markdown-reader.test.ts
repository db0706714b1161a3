import { Lexer, marked, type Token } from 'marked';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { MarkdownReader } from '../../src/markdown/markdown-reader.ts';

const read = (text: string): readonly Token[] => new MarkdownReader().read(text);
const whole = (text: string): Token[] => [...marked.lexer(text, { gfm: true, breaks: true })];

function childrenOf(token: Token): readonly Token[] {
  if (token.type === 'list') return token.items;
  if (token.type === 'table') return [...token.header, ...token.rows.flat()].flatMap(({ tokens }) => tokens);
  return 'tokens' in token ? (token.tokens ?? []) : [];
}
const depthOf = (tokens: readonly Token[]): number =>
  tokens.length === 0 ? 0 : 1 + Math.max(...tokens.map((token) => depthOf(childrenOf(token))));
const rawOf = (tokens: readonly Token[]): string => tokens.map(({ raw }) => raw).join('');

const answer = [
  '# Rivers\n\nThey carry **snow** to the [sea](https://example.com/sea) — see [map].\n',
  '\n[map]: https://example.com/map "A map"\n\n',
  '- one\n- two\n\n- three\n  - deeper\n\n    and on\n- four\n\nNot an item.\n\n',
  '1. first\n2. second\n\n',
  '> quoted\n> and on\n\nafter it\nlazily\n\n',
  '```js\nconst a = 1;\n\n\nconst b = 2;\n```\n\n',
  '| Place | Height |\n| --- | --- |\n| spring | 1,800 m |\n| mouth | *0 m* |\n\n',
  'A title\n===\n\n    indented\n\n    code\n\n---\n\nThe [map] again, and the end.',
].join('');

describe('Markdown that grows', () => {
  it('is parsed to the same blocks as the whole text, wherever it is cut', () => {
    for (const step of [1, 2, 7, 31]) {
      const reader = new MarkdownReader();
      let tokens: readonly Token[] = [];
      for (let end = 0; end < answer.length; end += step) tokens = reader.read(answer.slice(0, end));
      tokens = reader.read(answer);
      expect(tokens).toEqual(whole(answer));
      expect(rawOf(tokens)).toBe(answer);
    }
  });

  it('is parsed once, except for its last blocks', () => {
    const lexed = vi.spyOn(Lexer.prototype, 'lex');
    onTestFinished(() => lexed.mockRestore());
    const reader = new MarkdownReader();
    const long = Array.from({ length: 500 }, (_, at) => `Paragraph ${at} has some words.\n\n`).join('');
    for (let end = 0; end <= long.length; end += 10) reader.read(long.slice(0, end));
    const characters = lexed.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
    // Each time all of it would be half a thousand times as much as there is.
    expect(characters).toBeLessThan(long.length * 20);
  });

  it('is parsed from the start if the text is replaced', () => {
    const reader = new MarkdownReader();
    reader.read(answer);
    expect(reader.read('*Other*')).toEqual(whole('*Other*'));
    expect(reader.read('a\r\n\r\nb\rc')).toEqual(whole('a\n\nb\nc'));
  });
});

describe('Markdown that is built to block the page', () => {
  const repeated = (text: string) => text.repeat(Math.ceil(100_000 / text.length));

  it.each([
    '>',
    '> ',
    '- ',
    '1. ',
    '>- ',
    '*a_',
    '**a ',
    '_a ',
    'a**b',
    '[',
    '![a](',
    '`',
    '~a ',
    '<a ',
    '[a](b) ',
    '\\',
  ])('is read no deeper than the page can show, and is all there: 100,000 characters of %j', (piece) => {
    const text = repeated(piece);
    const tokens = read(text);
    expect(depthOf(tokens)).toBeLessThan(80);
    expect(rawOf(tokens).trimEnd()).toBe(text.trimEnd());
  });

  it('has no emphasis if it has too many markup characters', () => {
    const [paragraph] = read('*a_'.repeat(5_000));
    expect(paragraph).toMatchObject({ type: 'paragraph', tokens: [{ type: 'text', raw: '*a_'.repeat(5_000) }] });
    expect(read('Some **bold** words. '.repeat(100))).toEqual(whole('Some **bold** words. '.repeat(100)));
  });

  it('is a paragraph if the library fails to parse it', () => {
    const broken = vi.spyOn(Lexer.prototype, 'lex').mockImplementation(() => {
      throw new RangeError('Maximum call stack size exceeded');
    });
    onTestFinished(() => broken.mockRestore());
    expect(read('# a')).toEqual([
      { type: 'paragraph', raw: '# a', text: '# a', tokens: [{ type: 'text', raw: '# a', text: '# a' }] },
    ]);
  });

  it('may nest lists deeply over many lines', () => {
    const text = Array.from({ length: 300 }, (_, at) => `${' '.repeat(2 * at)}- a`).join('\n');
    expect(depthOf(read(text))).toBeLessThan(80);
  });
});
