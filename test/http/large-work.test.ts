import { expect, it, onTestFinished, vi } from 'vitest';
import { turnForLargeWork } from '../../src/http/limits/large-work.ts';

it('has one piece at a time, in turn, and as long between two for other work', async () => {
  // Time passes only in work, and not while other processes have the processor.
  let now = performance.now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  const hold = (milliseconds: number): void => {
    now += milliseconds;
  };
  let others = 0;
  let isOver = false;
  const other = (): void => {
    hold(1);
    others += 1;
    if (!isOver) setImmediate(other);
  };
  setImmediate(other);
  const order: number[] = [];
  const between: number[] = [];
  await Promise.all(
    [0, 1, 2, 3].map(async (n) => {
      await turnForLargeWork();
      order.push(n);
      between.push(others);
      hold(20);
    }),
  );
  isOver = true;
  expect(order).toEqual([0, 1, 2, 3]);
  const pauses = between.slice(1).map((count, index) => count - (between[index] ?? 0));
  // 20 ms hold 20 tasks of 1 ms.
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(20);
});

it('does not wait where nothing else is to be done', async () => {
  const began = performance.now();
  let worked = 0;
  for (let n = 0; n < 5; n += 1) {
    await turnForLargeWork();
    const from = performance.now();
    while (performance.now() - from < 40);
    worked += performance.now() - from;
  }
  expect(performance.now() - began - worked).toBeLessThan(worked);
});
