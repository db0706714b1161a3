import { firstValueFrom, Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { LineBuffer, readable } from '../../src/cli/terminal/log.ts';

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

it('lines are written together, a little later, in their order, and before the process ends', async () => {
  const written: string[] = [];
  const writes = new Subject<string>();
  writes.subscribe((text) => written.push(text));
  const first = firstValueFrom(writes);
  const lines = new LineBuffer((bytes) => writes.next(bytes.toString()));
  for (const line of ['a\n', 'b\n']) lines.write(line);
  expect(written).toEqual([]);
  expect(await first).toBe('a\nb\n');
  lines.write('c\n');
  lines.flush();
  lines.flush();
  expect(written).toEqual(['a\nb\n', 'c\n']);
});

it('a warning does not wait, and comes after the lines before it', () => {
  const written: string[] = [];
  const lines = new LineBuffer((bytes) => written.push(bytes.toString()));
  lines.write('{"level":30,"msg":"a"}\n');
  lines.write('{"level":40,"msg":"b"}\n');
  expect(written).toEqual(['{"level":30,"msg":"a"}\n{"level":40,"msg":"b"}\n']);
});

it('lines that no buffer has room for do not wait, and come after those before them', () => {
  const written: string[] = [];
  const lines = new LineBuffer((bytes) => written.push(bytes.toString()));
  const long = '…'.repeat(100_000);
  lines.write('a');
  lines.write(long);
  expect(written).toEqual(['a', long]);
});

it('what is written is not changed by lines that come later', () => {
  const written: Buffer[] = [];
  const lines = new LineBuffer((bytes) => written.push(bytes));
  for (const line of ['first', 'later']) {
    lines.write(line);
    lines.flush();
  }
  expect(written.map(String)).toEqual(['first', 'later']);
});

it('many lines of any length and characters arrive whole and in order', () => {
  let written = '';
  const lines = new LineBuffer((bytes) => {
    written += bytes.toString();
  });
  const all = Array.from({ length: 2_000 }, (_, n) => `${n}${'aé€😀'.repeat(n % 97)}\n`);
  for (const line of all) lines.write(line);
  lines.flush();
  expect(written).toBe(all.join(''));
});
