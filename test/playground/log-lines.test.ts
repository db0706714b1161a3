import { describe, expect, it } from 'vitest';
import type { Event, LogLine } from '../../src/client/client.ts';
import { isLogLine, type LoggedEvent, withLogLines } from '../../src/playground/inspector/run-record.ts';

const part: Event = { type: 'message.part', part: { content: '' } };
const event = (number: number): LoggedEvent => ({ number, at: number, event: part });
const line = (at: number, message: string): LogLine => ({
  kind: 'log',
  at,
  agent_name: 'a',
  logged_at: '2026-01-01T00:00:00.000Z',
  level: 'info',
  message,
});

const shown = (events: LoggedEvent[], lines: LogLine[]) =>
  withLogLines(events, lines).map((entry) => (isLogLine(entry) ? entry.message : entry.number));

describe('the lines of a log among the events of its run', () => {
  it('come after the event that was the last one when they were written', () => {
    expect(shown([1, 2, 3].map(event), [line(0, 'a'), line(2, 'b'), line(2, 'c'), line(3, 'd')])).toEqual([
      'a',
      1,
      2,
      'b',
      'c',
      3,
      'd',
    ]);
  });

  it('come at the end where the page does not have their event so far', () => {
    expect(shown([event(1)], [line(7, 'later')])).toEqual([1, 'later']);
    expect(shown([], [line(1, 'alone')])).toEqual(['alone']);
  });

  it('are left out where the page keeps their event no more', () => {
    expect(shown([8, 9].map(event), [line(2, 'old'), line(8, 'new')])).toEqual([8, 'new', 9]);
    expect(shown([8, 9].map(event), [line(2, 'old')])).toEqual([8, 9]);
  });
});
