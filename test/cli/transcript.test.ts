import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Transcript } from '../../src/cli/terminal/transcript.ts';
import { file } from '../../src/core/file.ts';
import { citation, progress, trajectory } from '../../src/core/parts.ts';
import type { Event } from '../../src/schema/event.ts';
import type { MessagePart } from '../../src/schema/message.ts';
import type { Run, RunStatus } from '../../src/schema/run.ts';
import { screenOf } from '../support/screen.ts';
import { fakeTerminal, type Kind, withoutStyles } from './fake-terminal.ts';

const at = (milliseconds: number): string => new Date(Date.UTC(2026, 0, 1) + milliseconds).toISOString();
const run = (status: RunStatus, more: Partial<Run> = {}): Event => ({
  type: status === 'created' ? 'run.created' : status === 'failed' ? 'run.failed' : 'run.completed',
  run: { run_id: 'r', agent_name: 'demo', status, output: [], created_at: at(0), ...more },
});
const created = (role = 'agent/demo'): Event => ({
  type: 'message.created',
  message: { role, parts: [], created_at: at(0), completed_at: null },
});
const completed = (role = 'agent/demo', time = 0): Event => ({
  type: 'message.completed',
  message: { role, parts: [], created_at: at(0), completed_at: at(time) },
});
const part = (value: MessagePart): Event => ({ type: 'message.part', part: value });
const text = (content: string): Event => part({ content_type: 'text/plain', content });
const done = run('completed', { finished_at: at(3_200) });

/** Shows events, each some milliseconds after the one before it. */
function show(kind: Kind, events: readonly (Event | number)[], columns = 60) {
  vi.useFakeTimers({ now: 0 });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const fake = fakeTerminal(kind, columns);
  const transcript = new Transcript(fake.terminal);
  for (const event of events) {
    if (typeof event === 'number') vi.advanceTimersByTime(event);
    else transcript.show(event);
  }
  return { ...fake, screen: () => screenOf(fake.both(), columns).join('\n') };
}

const tour: (Event | number)[] = [
  run('created'),
  created(),
  text('# Rivers\n\nThe **Nile** is long'),
  part(citation({ start_index: 10, end_index: 30, title: 'A list', url: 'https://a.example' })),
  text('.\n\n'),
  progress('Measuring', { done: 1, total: 2 }),
  500,
  progress('Measuring', { done: 2, total: 2 }),
  500,
  part(trajectory({ message: 'Measured.', tool_name: 'measure', tool_output: { km: 6650 } })),
  text('Done.'),
  part(file('a.txt', 'x')),
  completed(),
  done,
];

describe('a run on a terminal with colours', () => {
  it('is rendered Markdown, with steps in their places, sources and figures', () => {
    expect(show('rich', tour).screen()).toBe(
      [
        'Rivers',
        '',
        'The Nile is long [1].',
        '',
        '✓ Measured. measure → {"km":6650} 1.0 s',
        '',
        'Done.',
        '',
        'a.txt (text/plain, 1 bytes)',
        '[1] A list, https://a.example, “The **Nile** is long”',
        'Completed [3.2 s, 6 parts].',
        '',
      ].join('\n'),
    );
  });

  it('shows with a spinner that the run goes on, until its first output, and then the time before that', () => {
    const waiting = show('rich', [run('created'), run('in-progress'), 1_500]);
    expect(waiting.screen()).toMatch(/^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] demo 1\.\d s$/);
    const first: Event = {
      type: 'message.created',
      message: { role: 'agent/demo', parts: [], created_at: at(1_500), completed_at: null },
    };
    const events = [run('created'), run('in-progress'), 1_500, first, text('Hello'), 2_000];
    expect(show('rich', events).screen()).toBe('Hello');
    expect(show('rich', [...events, completed(), done]).screen()).toMatch(
      /Completed \[3\.2 s, the first after 1\.5 s, 1 part\]\.\n$/,
    );
  });

  it('shows no spinner for an answer that comes soon', () => {
    expect(show('rich', [run('created'), run('in-progress'), 200]).screen()).toBe('');
  });

  it.each(['plain', 'pipe'] as const)('has no spinner without colours: %s', (kind) => {
    expect(show(kind, [run('created'), run('in-progress'), 1_500]).both()).toBe('');
  });

  it('shows the running step with a spinner, a bar and its time', () => {
    const { screen } = show('rich', [...tour.slice(0, 8), 400]);
    expect(screen()).toMatch(/^Rivers\n\nThe Nile is long \[1\]\.\n\n. Measuring ██████████ 2\/2 0\.\d s$/);
  });

  it('shows text that grows in place, and each block once', () => {
    const words = 'A list:\n\n- one\n- two\n\nAnd **the end**.'.split(/(?<= )/);
    const { screen, both } = show('rich', [run('created'), created(), ...words.flatMap((word) => [text(word), 100])]);
    expect(screen()).toBe('A list:\n\n• one\n• two\n\nAnd the end.');
    expect(both()).toContain('\u001b[J');
  });

  it('indents the messages of called agents, with their time', () => {
    const role = 'agent/optimist';
    const { screen } = show('rich', [
      run('created'),
      created(role),
      text('It will be fine.'),
      completed(role, 1_500),
      created(),
      text('So be it.'),
      completed(),
      done,
    ]);
    expect(screen()).toBe(
      [
        '▸ optimist',
        '',
        '  It will be fine.',
        '',
        '  ✓ optimist 1.5 s',
        '',
        'So be it.',
        '',
        'Completed [3.2 s, 2 parts].',
        '',
      ].join('\n'),
    );
  });

  it('marks the steps that were running when the run failed', () => {
    const error = { code: 'server_error' as const, message: 'No.' };
    const events = [run('created'), created(), part(trajectory({ tool_name: 'dig' })), 2_000];
    expect(show('rich', [...events, run('failed', { error, finished_at: at(2_000) })]).screen()).toBe(
      ['✗ dig 2.0 s', 'The run failed: No. (server_error) [2.0 s, 1 part]', ''].join('\n'),
    );
  });
});

it('a run ends with the tokens that its agent reports, where it reports them', () => {
  const used = run('completed', { finished_at: at(1_000), usage: { tokens: 42 } });
  expect(show('pipe', [run('created'), created(), text('x'), used]).err()).toBe('Completed [1.0 s, 42 tokens].\n');
});

describe('a run without a terminal', () => {
  it('has the text unchanged on stdout, and each step as a line on stderr', () => {
    const { out, err } = show('pipe', tour);
    expect(out()).toBe('# Rivers\n\nThe **Nile** is long.\n\nDone.\n');
    expect(err().split('\n')).toEqual([
      'Measuring (1/2)',
      'Measuring (2/2)',
      'Measured. measure → {"km":6650} 1.0 s',
      'a.txt (text/plain, 1 bytes)',
      '[1] A list, https://a.example, “The **Nile** is long”',
      'Completed [3.2 s, 6 parts].',
      '',
    ]);
  });

  it('has a line for each tenth of a long progress', () => {
    const many = Array.from({ length: 1_000 }, (_, index) => progress('Reading', { done: index + 1, total: 1_000 }));
    expect(show('pipe', many).err().trimEnd().split('\n')).toHaveLength(11);
  });
});

describe('an interrupted message', () => {
  const interrupted: Event = {
    type: 'message.completed',
    message: { role: 'agent/demo', parts: [], created_at: at(0), finish_reason: 'interrupted', completed_at: at(0) },
  };
  const again = [run('created'), created(), text('The cat'), interrupted, created(), text('The dog ran.'), completed()];

  it('is followed by a note on a terminal', () => {
    expect(show('rich', [...again, done]).screen()).toBe(
      [
        'The cat',
        '',
        'Interrupted, and said again below.',
        '',
        'The dog ran.',
        '',
        'Completed [3.2 s, 2 parts].',
        '',
      ].join('\n'),
    );
  });

  it('in a pipe is a text of its own, and the note is on stderr', () => {
    const { out, err } = show('pipe', [...again, done]);
    expect(out()).toBe('The cat\n\nThe dog ran.\n');
    expect(err()).toContain('Interrupted, and said again below.');
  });
});

it('a terminal without colours gets the text as it comes', () => {
  const { both } = show('plain', tour);
  expect(both()).not.toContain('\u001b[J');
  expect(withoutStyles(both())).toContain('The **Nile** is long[1].');
});
