import { expect, it } from 'vitest';
import { formatAge, formatDuration } from '../../src/cli/durations.ts';

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
