import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ReadyCheck } from '../../src/engine/store/ready-check.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** A check of a store that answers each commit with `answer`, and the number of its commits. */
function checkOf(answer: () => Promise<never[]>) {
  const store = { commit: vi.fn(answer) };
  return { check: new ReadyCheck(() => store.commit(), 5_000), store };
}

const soon = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

it('writes once in five seconds, however often it is asked, and not while runs are committed', async () => {
  const { check, store } = checkOf(async () => []);
  for (let n = 0; n < 10; n += 1) await check.passes();
  expect(store.commit.mock.calls).toHaveLength(1);
  vi.advanceTimersByTime(4_000);
  check.onPassed();
  vi.advanceTimersByTime(4_000);
  await check.passes();
  expect(store.commit).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(2_000);
  await check.passes();
  expect(store.commit).toHaveBeenCalledTimes(2);
});

it('asks a store that refuses once in a second, until the store takes a commit', async () => {
  const { check, store } = checkOf(() => Promise.reject(new Error('the disk is full')));
  const refused = () => expect(check.passes()).rejects.toMatchObject({ kind: 'store_unavailable' });
  for (let n = 0; n < 10; n += 1) await refused();
  expect(store.commit).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1_001);
  for (let n = 0; n < 10; n += 1) await refused();
  expect(store.commit).toHaveBeenCalledTimes(2);
  check.onPassed();
  await check.passes();
});

it('asks a store that does not answer once, says so after the time-out, and believes its late answer', async () => {
  let answer = (_: never[]): void => {};
  const { check, store } = checkOf(() => new Promise((resolve) => (answer = resolve)));
  const late = expect(check.passes()).rejects.toMatchObject({ kind: 'store_unavailable' });
  await vi.advanceTimersByTimeAsync(5_000);
  await late;
  await vi.advanceTimersByTimeAsync(60_000);
  await expect(check.passes()).rejects.toMatchObject({ kind: 'store_unavailable' });
  expect(store.commit).toHaveBeenCalledTimes(1);
  answer([]);
  await soon();
  await check.passes();
});
