import { describe, expect, it } from 'vitest';
import { readable } from '../../src/cli/log-format.ts';

const line = (fields: object): string => `${JSON.stringify({ level: 30, time: 1_769_860_802_500, ...fields })}\n`;

describe('a line of the log for people', () => {
  it('has the time, the level, the text and the fields', () => {
    expect(readable(line({ pid: 1, hostname: 'h', msg: 'request', path: '/runs', status: 200 }))).toBe(
      '12:00:02.500 INFO  request path=/runs status=200',
    );
  });

  it('has the stack of an error below, or its message', () => {
    expect(readable(line({ level: 50, msg: 'run failed', err: { message: 'No.', stack: 'Error: No.\n  at x' } }))).toBe(
      '12:00:02.500 ERROR run failed\n    Error: No.\n      at x',
    );
    expect(readable(line({ level: 40, msg: 'm', err: { message: 'No.' } }))).toContain('WARN  m\n    No.');
  });

  it('is what was written where that is no JSON, or has odd values', () => {
    expect(readable('plain\n')).toBe('plain');
    expect(readable(line({ level: 'high', msg: null, list: [1], err: 7 }))).toBe('12:00:02.500 high  null list=[1]');
  });
});
