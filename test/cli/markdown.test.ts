import { Lexer } from 'marked';
import { describe, expect, it } from 'vitest';
import { type Paint, renderMarkdown } from '../../src/cli/terminal/answer.ts';
import { sanitize } from '../../src/cli/terminal/format.ts';

/** Shows styles as letters in brackets. */
const marked: Paint = (text, ...styles) =>
  styles.length === 0 ? sanitize(text) : `<${styles.map((style) => style[0]).join('')}:${sanitize(text)}>`;
const plain: Paint = (text) => sanitize(text);

const render = (source: string, width = 40, paint = plain): string[] =>
  renderMarkdown(new Lexer({ gfm: true, breaks: true }).lex(source), width, paint);

describe('Markdown on a terminal', () => {
  it('has styles for headings, emphasis, code and links', () => {
    expect(render('# Title\n\nA **bold** and *soft* `word`.', 80, marked)).toEqual([
      '<bu:Title>',
      '',
      'A <b:bold> and <i:soft> <c:word>.',
    ]);
    expect(render('[here](https://a.example) <https://b.example>', 80, marked)).toEqual([
      '<u:here><d: (https://a.example)> <u:https://b.example>',
    ]);
  });

  it('shows the source of links that a click must not follow, and of HTML', () => {
    expect(render('[x](javascript:alert) <b>hi</b> ![cat](https://a.example/c.png)', 80)).toEqual([
      '[x](javascript:alert) <b>hi</b> ![cat](https://a.example/c.png)',
    ]);
  });

  it('wraps at the width, and indents what lists and quotes contain', () => {
    expect(render('one two three four five', 10)).toEqual(['one two', 'three four', 'five']);
    expect(render('- one two three four\n- b\n  1. c\n\n> said', 14)).toEqual([
      '• one two',
      '  three four',
      '• b',
      '  1. c',
      '',
      '│ said',
    ]);
    expect(render('9. a\n10. b')).toEqual([' 9. a', '10. b']);
    expect(render('- [x] done\n- [ ] open')).toEqual(['• [x] done', '• [ ] open']);
  });

  it('keeps the lines of code', () => {
    expect(render('```ts\nconst a = 1;\n\n  b();\n```')).toEqual(['  const a = 1;', '  ', '    b();']);
  });

  it('aligns tables, and lists the cells of one that is too wide', () => {
    const table = '| River | km |\n| --- | ---: |\n| Nile | 6,650 |\n| 世界 | 1 |';
    expect(render(table)).toEqual(['River     km', '─────  ─────', 'Nile   6,650', '世界       1']);
    expect(render(table, 10)).toEqual(['River:', 'Nile', 'km: 6,650', '', 'River:', '世界', 'km: 1']);
  });

  it('removes control characters from every text, also of links and code', () => {
    const evil = '\u001b]52;c;cm0=\u0007\u009b2J\u202e';
    const source = `# ${evil}a\n\n[t${evil}](https://x.example/${evil})\n\n\`c${evil}\`\n\n\`\`\`\n${evil}\n\`\`\`\n\n| ${evil} |\n| - |\n| ${evil} |\n\n- ${evil}\n\n> ${evil}\n\n<b>${evil}</b>`;
    expect(render(source).join('')).not.toMatch(/[^\P{Cc}]|\p{Bidi_Control}/u);
  });
});
