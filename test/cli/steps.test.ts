import { describe, expect, it } from 'vitest';
import { progressBar, Steps } from '../../src/cli/terminal/steps.ts';
import { progress, trajectory } from '../../src/core/parts.ts';
import type { Event } from '../../src/schema/event.ts';
import type { MessagePart, TrajectoryMetadata } from '../../src/schema/message.ts';
import type { RunStatus } from '../../src/schema/run.ts';

const part = (value: MessagePart): Event => ({ type: 'message.part', part: value });
const text = part({ content: 'x' });
const call = (tool_name: string, more: Partial<TrajectoryMetadata> = {}): Event =>
  part(trajectory({ tool_name, tool_input: { q: 1 }, ...more }));
const ended = (status: RunStatus): Event => ({
  type: 'run.completed',
  run: { run_id: 'r', agent_name: 'a', status, output: [], created_at: '2026-01-01T00:00:00.000Z' },
});
const texts = (steps: Steps): string[] => steps.running.map((step) => step.text);

describe('steps', () => {
  it('run until the agent goes on', () => {
    const steps = new Steps();
    expect(steps.next(part(trajectory({ message: 'Looking.' })), 0)).toEqual([]);
    expect(texts(steps)).toEqual(['Looking.']);
    expect(steps.next(text, 1_500)).toEqual([{ text: 'Looking.', milliseconds: 1_500, ok: true, hasOutput: false }]);
    expect(steps.running).toEqual([]);
  });

  it('of tools run beside each other, each until its output', () => {
    const steps = new Steps();
    steps.next(call('one'), 0);
    steps.next(call('two'), 100);
    expect(texts(steps)).toEqual(['one {"q":1}', 'two {"q":1}']);
    const [one] = steps.next(call('one', { tool_output: { a: 1 } }), 1_000);
    expect(one).toEqual({ text: 'one {"q":1} → {"a":1}', milliseconds: 1_000, ok: true, hasOutput: true });
    expect(texts(steps)).toEqual(['two {"q":1}']);
  });

  it('that are over when they are reported have no time', () => {
    expect(new Steps().next(call('one', { tool_output: {} }), 5)).toEqual([
      { text: 'one {"q":1} → {}', ok: true, hasOutput: true },
    ]);
  });

  it('show progress as one step, for which the next result stands', () => {
    const steps = new Steps();
    steps.next(progress('Reading a', { done: 1, total: 2 }), 0);
    expect(steps.next(progress('Reading b', { done: 2, total: 2 }), 500)).toEqual([]);
    expect(texts(steps)).toEqual(['Reading b (2/2)']);
    expect(steps.next(call('read', { tool_output: {} }), 900)).toEqual([
      { text: 'read {"q":1} → {}', milliseconds: 900, ok: true, hasOutput: true },
    ]);
  });

  it('show progress without a total as a step for each message', () => {
    const steps = new Steps();
    steps.next(progress('Reading'), 0);
    expect(steps.next(progress('Reading'), 100)).toEqual([]);
    expect(steps.next(progress('Writing'), 300)).toMatchObject([{ text: 'Reading', milliseconds: 300 }]);
    expect(texts(steps)).toEqual(['Writing']);
  });

  it('end with the run, as failed where the run fails', () => {
    const steps = new Steps();
    steps.next(call('one'), 0);
    expect(steps.next(ended('failed'), 10)).toMatchObject([{ ok: false }]);
    steps.next(call('two'), 20);
    expect(steps.next(ended('awaiting'), 30)).toMatchObject([{ ok: true }]);
  });

  it('are bounded, and ignore progress that is malformed', () => {
    const steps = new Steps();
    for (let tool = 0; tool < 1_000; tool += 1) steps.next(call(`t${tool}`), 0);
    expect(steps.running).toHaveLength(20);
    const odd: Event = { type: 'generic', generic: { kind: 'progress', message: 5, done: 'x', total: -1 } };
    steps.next(odd, 0);
    expect(texts(steps).at(-1)).toBe('Working');
    expect(steps.next({ type: 'generic', generic: { kind: 'mine' } }, 0)).toEqual([]);
  });

  it('have a bar where the total is known', () => {
    expect(
      [{ done: 0 }, { done: 5 }, { done: 10 }, { done: 99 }, { done: -1 }].map(({ done }) =>
        progressBar({ message: '', done, total: 10 }),
      ),
    ).toEqual(['░░░░░░░░░░', '█████░░░░░', '██████████', '██████████', '░░░░░░░░░░']);
    expect(progressBar({ message: 'x', done: 3 })).toBeUndefined();
  });

  it('of called agents stand below their callers, with the times of the log', () => {
    const report = (path: string, agent: string, state: string, second: number): Event => ({
      type: 'generic',
      generic: { kind: 'call', path, agent, state, at: `2026-01-01T00:00:0${second}.000Z` },
    });
    const steps = new Steps();
    steps.next(report('team/1', 'team', 'began', 0), 0);
    steps.next(report('team/1 expert/1', 'expert', 'began', 1), 0);
    expect(steps.next(text, 0)).toEqual([]);
    expect(texts(steps)).toEqual(['agent team', '  agent expert']);
    expect(steps.next(report('team/1 expert/1', 'expert', 'failed', 3), 0)).toEqual([
      { text: '  agent expert', milliseconds: 2_000, ok: false, hasOutput: false },
    ]);
    // The run ends before its call: there is no event of that.
    expect(steps.next(ended('cancelled'), 0)).toEqual([{ text: 'agent team', ok: false, hasOutput: false }]);
    expect(steps.running).toEqual([]);
  });

  it('ignore events of an agent that only look like calls', () => {
    const steps = new Steps();
    const call = { kind: 'call', path: 'a/1', agent: 'a', state: 'began', at: '2026-01-01T00:00:00.000Z' };
    for (const generic of [
      { kind: 'call' },
      { ...call, state: 'odd' },
      { ...call, at: 'soon' },
      { ...call, path: 'a/1 '.repeat(20) },
    ])
      expect(steps.next({ type: 'generic', generic }, 0)).toEqual([]);
    expect(steps.running).toEqual([]);
  });
});
