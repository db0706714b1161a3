import { firstValueFrom, Subject } from 'rxjs';
import { expect, it } from 'vitest';
import { LineBuffer } from '../../src/cli/line-buffer.ts';

it('lines are written together, a little later, in their order, and before the process ends', async () => {
  const written: string[] = [];
  const writes = new Subject<string>();
  writes.subscribe((text) => written.push(text));
  const first = firstValueFrom(writes);
  const lines = new LineBuffer((text) => writes.next(text));
  for (const line of ['a\n', 'b\n']) lines.write(line);
  expect(written).toEqual([]);
  expect(await first).toBe('a\nb\n');
  lines.write('c\n');
  lines.flush();
  lines.flush();
  expect(written).toEqual(['a\nb\n', 'c\n']);
});

it('long lines do not wait', () => {
  const written: string[] = [];
  const lines = new LineBuffer((text) => written.push(text));
  lines.write('x'.repeat(100_000));
  expect(written).toHaveLength(1);
});
