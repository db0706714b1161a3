import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  formatAge,
  formatDuration,
  oneLine,
  redactCredentials,
  sanitizedJson,
  shellQuote,
  suggestion,
} from '../../src/cli/terminal/format.ts';
import { Transcript } from '../../src/cli/terminal/transcript.ts';
import { closest } from '../../src/core/closest.ts';
import type { Event } from '../../src/schema/event.ts';
import { fakeTerminal, withoutStyles } from './fake-terminal.ts';

const folder = resolve(import.meta.dirname, '../../src/cli');

/** Clears the screen, sets the title, writes to the clipboard, also with C1; DEL, return, the direction of writing. */
const malicious =
  'a\u001b[2Jb\u001b]0;title\u0007c\u001b]52;c;cm0gLXJm\u0007d\u009b2Je\u009d52;c;cm0=\u009cf\u007fg\rh\u202ei\u2066j\u2069\u200fk\u061cl';
const isHarmless = (text: string): boolean => !/[^\P{Cc}\n\t]|\p{Bidi_Control}/u.test(text);
const run = (status: 'failed' | 'completed') => ({
  run_id: malicious,
  agent_name: malicious,
  status,
  output: [],
  created_at: '2026-01-01T00:00:00.000Z',
  error: { code: 'server_error' as const, message: malicious, data: { reason: malicious } },
});
const events: Event[] = [
  { type: 'run.created', run: { ...run('completed'), status: 'created' } },
  { type: 'message.created', message: { role: `agent/${malicious}`, parts: [], completed_at: null } },
  { type: 'message.part', part: { content: malicious } },
  { type: 'message.part', part: { content: `[${malicious}](https://a.example/${malicious}) \`${malicious}\`` } },
  { type: 'generic', generic: { kind: 'progress', message: malicious, done: 1, total: 2 } },
  {
    type: 'message.part',
    part: { metadata: { kind: 'trajectory', message: malicious, tool_name: malicious, tool_input: { a: malicious } } },
  },
  {
    type: 'message.part',
    part: { metadata: { kind: 'citation', title: malicious, url: malicious, description: malicious } },
  },
  { type: 'message.part', part: { name: malicious, content_type: malicious, content: 'x' } },
  { type: 'message.part', part: { name: malicious, content_url: malicious } },
  { type: 'generic', generic: { a: malicious } },
  { type: 'error', error: { code: 'server_error', message: malicious, data: { code: malicious } } },
  { type: 'message.completed', message: { role: 'agent/a', parts: [] } },
  { type: 'run.failed', run: run('failed') },
];

describe('output of an agent', () => {
  it.each(['rich', 'plain'] as const)('cannot control a %s terminal, however it is printed', (kind) => {
    vi.useFakeTimers();
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { terminal, both } = fakeTerminal(kind);
    const transcript = new Transcript(terminal);
    for (const event of events) {
      transcript.show(event);
      // Running steps and growing text are drawn in place.
      vi.advanceTimersByTime(500);
    }
    for (const text of [malicious, `${malicious}\n`]) {
      terminal.answer(text);
      terminal.print(text, 'bold');
      terminal.note(text);
      terminal.error(text);
      terminal.mark(text);
    }
    terminal.json(events);
    terminal.painted([malicious, terminal.paint(malicious, 'bold')]);
    const shown = withoutStyles(both());
    expect(shown).toContain('title');
    expect(isHarmless(shown)).toBe(true);
  });

  it('has no colours of its own on a rich terminal', () => {
    const { terminal, both } = fakeTerminal('rich');
    const transcript = new Transcript(terminal);
    const pink = '\u001b[35mpink\u001b[5m';
    const texts = [
      pink,
      `**${pink}**`,
      `\`${pink}\``,
      `[${pink}](https://a.example)`,
      `| ${pink} |\n| - |\n| ${pink} |`,
    ];
    for (const text of texts) transcript.show({ type: 'message.part', part: { content: `${text}\n\n` } });
    transcript.show({ type: 'message.part', part: { metadata: { kind: 'trajectory', message: pink } } });
    transcript.close();
    expect(both()).toContain('[35mpink');
    expect(both()).not.toMatch(new RegExp(`${'\\u001b'}\\[(35|5)m`));
  });

  it('is escaped in JSON, which parses to the same value', () => {
    for (const kind of ['rich', 'pipe'] as const) {
      const { terminal, out } = fakeTerminal(kind);
      terminal.json({ [malicious]: [malicious, 'Grüße 世界 🌊'] });
      const line = out();
      expect(JSON.parse(line)).toEqual({ [malicious]: [malicious, 'Grüße 世界 🌊'] });
      expect(line).toContain('\\u009b');
      expect(line).toContain('\\u202e');
      expect(line).toContain('世界 🌊');
      expect(isHarmless(line)).toBe(true);
    }
  });

  it('goes to a pipe unchanged, and is one line in a table or a prompt', () => {
    const { terminal, out } = fakeTerminal('pipe');
    terminal.answer(malicious);
    expect(out()).toBe(malicious);
    expect(isHarmless(oneLine(`${malicious}\n\n${malicious}`))).toBe(true);
    expect(oneLine('a\n\tb')).toBe('a b');
    expect(oneLine('x'.repeat(1_000))).toHaveLength(300);
    expect(sanitizedJson('a\u007f')).toBe('"a\\u007f"');
  });
});

describe('credentials in a URL', () => {
  it.each([
    ['http://me:secret@host:80/path', 'http://***@host:80/path'],
    ['no store at postgres://me:se@cret@db/x?y=a@b.', 'no store at postgres://***@db/x?y=a@b.'],
    ['http://host/a@b and c@d', 'http://host/a@b and c@d'],
    ['postgres://me:***@host/a, http://me:x@host', 'postgres://me:***@host/a, http://***@host'],
    ['https://host/keys?api_key=hush&b=1#c then', 'https://host/keys?api_key=***&b=1#c then'],
    ['https://host/?a=1&access_token=hush', 'https://host/?a=1&access_token=***'],
  ])('are redacted in %s', (text, shown) => {
    expect(redactCredentials(text)).toBe(shown);
    const { terminal, err } = fakeTerminal('pipe');
    terminal.note(text);
    terminal.error(text);
    expect(withoutStyles(err())).toBe(`${shown}\n${shown}\n`);
  });
});

describe('shellQuote', () => {
  it('quotes each argument as one word of a shell', () => {
    expect(['0d9c-1', 'a b', "$(rm -rf '/')", 'http://h:1/?a=b&c'].map(shellQuote)).toEqual([
      '0d9c-1',
      "'a b'",
      "'$(rm -rf '\\''/'\\'')'",
      "'http://h:1/?a=b&c'",
    ]);
  });
});

describe('the command line', () => {
  it('prints through src/cli/terminal/terminal.ts only', () => {
    const direct =
      /process\s*\.\s*(stdout|stderr)|\{[^}]*\b(stdout|stderr)\b[^}]*\}\s*=\s*process|console\s*\.|styleText|node:(tty|readline)|createWriteStream|writeSync\(\s*[12]\b/;
    // The thread writes while the event loop, which the terminal needs, is held: one line of the server's log.
    const own = ['terminal/terminal.ts', 'serving/watchdog-thread.ts'];
    const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.ts') && !own.includes(name) && direct.test(readFileSync(join(folder, name), 'utf8')),
    );
    expect(found).toEqual([]);
    expect(direct.test(readFileSync(join(folder, 'terminal/terminal.ts'), 'utf8'))).toBe(true);
  });
});

it.each([
  [0, '0.0 s'],
  [1_234, '1.2 s'],
  [9_960, '10 s'],
  [59_600, '1 min 0 s'],
  [185_000, '3 min 5 s'],
  [7_800_000, '2 h 10 min'],
  [-5, '0.0 s'],
])('a duration of %i ms is %s', (milliseconds, words) => {
  expect(formatDuration(milliseconds)).toBe(words);
});

it.each([
  [0, 'just now'],
  [45, '45 s ago'],
  [120, '2 min ago'],
  [7_300, '2 h ago'],
  [90_000, '1 day ago'],
  [300_000, '3 days ago'],
  [-60, 'just now'],
])('a time %i seconds ago is %s', (seconds, words) => {
  const now = Date.UTC(2026, 0, 1);
  expect(formatAge(new Date(now - seconds * 1000).toISOString(), now)).toBe(words);
});

const agents = ['approve', 'chat', 'demo', 'echo', 'summarize'];

it.each([
  ['ecko', 'echo'],
  ['dmeo', 'demo'],
  ['Chat', 'chat'],
  ['sumarise', 'summarize'],
  ['xyz', undefined],
  ['', undefined],
])('%s is probably %s', (typed, meant) => {
  expect(closest(typed, agents)).toBe(meant);
});

it('names what there is, where nothing is similar', () => {
  expect(suggestion('xyz', agents)).toBe(' There are: approve, chat, demo, echo, summarize.');
  expect(suggestion('ecko', agents)).toBe(' Did you mean echo?');
  expect(suggestion('ecko', [])).toBe('');
});
