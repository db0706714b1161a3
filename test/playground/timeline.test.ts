import { describe, expect, it } from 'vitest';
import type { Event, Run } from '../../src/index.ts';
import { EventClock, type LoggedEvent, RunRecord } from '../../src/playground/inspector/run-record.ts';
import { timelineOf } from '../../src/playground/inspector/timeline.tsx';

const at = (milliseconds: number): string => new Date(Date.UTC(2026, 0, 1) + milliseconds).toISOString();
const run = (status: Run['status'], more: Partial<Run> = {}): Run => ({
  run_id: 'r',
  agent_name: 'guide',
  status,
  output: [],
  created_at: at(0),
  ...more,
});
const message = (more: object = {}) => ({ role: 'agent/guide', parts: [], created_at: at(100), ...more });
const question = message({ created_at: at(900), parts: [{ content: 'Where to?' }] });
const reply = { type: 'message' as const, message: { role: 'user', parts: [] }, received_at: at(2_000) };

/** Each with the time at which it happens. */
const story: readonly (readonly [number, Event])[] = [
  [0, { type: 'run.created', run: run('created') }],
  [50, { type: 'run.in-progress', run: run('in-progress') }],
  [100, { type: 'message.created', message: message() }],
  [200, { type: 'generic', generic: { kind: 'progress', message: 'One' } }],
  [300, { type: 'generic', generic: { kind: 'progress', message: 'Two' } }],
  [400, { type: 'message.part', part: { metadata: { kind: 'trajectory', message: 'Looked.', tool_name: 'look' } } }],
  [800, { type: 'message.completed', message: message({ completed_at: at(800) }) }],
  [900, { type: 'run.awaiting', run: run('awaiting', { await_request: { type: 'message', message: question } }) }],
  [2_000, { type: 'run.in-progress', run: run('in-progress', { await_resume: reply }) }],
  [2_500, { type: 'run.completed', run: run('completed', { finished_at: at(2_500) }) }],
];
const logged = story.map(([time, event], index): LoggedEvent => ({ number: index + 1, at: time, event }));

describe('the timeline of a run', () => {
  it('has its messages, steps, progress and questions with their times', () => {
    expect(timelineOf(logged).map(({ kind, label, from, to }) => [kind, label, from, to])).toEqual([
      ['run', 'guide', 0, 2_500],
      ['queue', 'Queue', 0, 50],
      ['message', 'guide', 100, 800],
      ['progress', 'Two', 100, 300],
      ['step', 'look', 300, 400],
      ['question', 'Question', 900, 2_000],
    ]);
  });

  it('has calls of agents, each until its own end or that of the run', () => {
    const call = (path: string, state: string, time: number): LoggedEvent => ({
      number: 1,
      at: time,
      event: { type: 'generic', generic: { kind: 'call', path, agent: path.slice(0, 1), state, at: at(time) } },
    });
    const events = [call('a/1', 'began', 100), call('b/1', 'began', 200), call('a/1', 'completed', 300)];
    const [begin, end] = [logged.slice(0, 2), logged.slice(-1)];
    const calls = timelineOf([...begin, ...events, ...end]).filter(({ kind }) => kind === 'call');
    expect(calls.map(({ label, from, to }) => [label, from, to])).toEqual([
      ['a', 100, 300],
      ['b', 200, 2_500],
    ]);
  });

  it('leaves open what goes on, and ends everything with the run', () => {
    expect(timelineOf(logged.slice(0, 8)).filter(({ to }) => to === undefined)).toMatchObject([
      { kind: 'run' },
      { kind: 'question', detail: 'Where to?' },
    ]);
    const cut = [
      ...logged.slice(0, 4),
      { number: 5, at: 700, event: { type: 'run.cancelled' as const, run: run('cancelled') } },
    ];
    expect(timelineOf(cut).every(({ to }) => to !== undefined)).toBe(true);
  });
});

describe('the times of a run that the page reads from the log', () => {
  it('are those of the server where it has them; other events come after those as they arrive', () => {
    const clock = new EventClock();
    // The past arrives together at 5,000 ms, the end arrives live.
    const times = story.slice(0, -1).map(([, event]) => clock.add(event, 5_000));
    expect(times).toEqual([0, 0, 100, 100, 100, 100, 800, 900, 2_000]);
    expect(clock.elapsed(5_250)).toBe(2_250);
    expect(clock.add({ type: 'generic', generic: {} }, 5_300)).toBe(2_300);
    const last = story.at(-1)?.[1];
    expect(last && clock.add(last, 6_400)).toBe(2_500);
  });

  it('never decrease, even if the clocks of two nodes differ', () => {
    const clock = new EventClock();
    clock.add({ type: 'run.created', run: run('created') }, 0);
    clock.add({ type: 'generic', generic: {} }, 3_000);
    expect(clock.add({ type: 'message.created', message: message() }, 3_000)).toBe(3_000);
  });

  it('are counted from the sending where the page has created the run', () => {
    const record = new RunRecord('r', 1_000);
    for (const [time, event] of story) record.add(event, 1_000 + time);
    expect(record.events.map((entry) => entry.at)).toEqual(story.map(([time]) => time));
    expect(record.elapsed(4_000)).toBe(3_000);
  });
});
