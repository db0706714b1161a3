import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { encodeMessage, flat } from '../../src/core/encode.ts';

it('keeps a text in one piece, also where V8 has optimized the code that makes it', () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const time = '2026-01-01T00:00:00.000Z';
  const textOf = (n: number): string =>
    flat(
      encodeMessage({
        role: 'user',
        parts: [{ content_type: 'text/plain', content: `the message with number ${n}` }],
        created_at: time,
        completed_at: time,
      }),
    );
  for (let n = 0; n < 300_000; n += 1) textOf(n);
  const kept = new Array<string>(50_000).fill('');
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < kept.length; n += 1) kept[n] = textOf(n);
  collect();
  const each = (process.memoryUsage().heapUsed - before) / kept.length;
  // In pieces, a text of 150 characters takes three times its length.
  expect(each).toBeLessThan(2 * textOf(kept.length).length);
});
