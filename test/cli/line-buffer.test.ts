import { expect, it } from 'vitest';
import { LineBuffer } from '../../src/cli/line-buffer.ts';

it('the lines of one turn are written at once, in their order, and before the process ends', async () => {
  const written: string[] = [];
  const lines = new LineBuffer((text) => written.push(text));
  for (const line of ['a\n', 'b\n']) lines.write(line);
  expect(written).toEqual([]);
  await new Promise((resolve) => setImmediate(resolve));
  lines.write('c\n');
  lines.flush();
  expect(written).toEqual(['a\nb\n', 'c\n']);
  await new Promise((resolve) => setImmediate(resolve));
  expect(written).toHaveLength(2);
});

it('long lines do not wait for the end of the turn', () => {
  const written: string[] = [];
  const lines = new LineBuffer((text) => written.push(text));
  lines.write('x'.repeat(100_000));
  expect(written).toHaveLength(1);
});
