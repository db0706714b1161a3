import { firstValueFrom, Subject } from 'rxjs';
import { expect, it } from 'vitest';
import { LineBuffer } from '../../src/cli/line-buffer.ts';

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
