import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { fail } from '../../src/core/errors.ts';
import { newId } from '../../src/engine/ids.ts';
import { Cursor } from '../../src/engine/log/cursor.ts';
import { PageCache } from '../../src/engine/log/page-cache.ts';
import { storedSource } from '../../src/engine/log/source.ts';
import type { RunRow, Store } from '../../src/index.ts';
import { openStore } from '../../src/stores/open.ts';
import { fresh } from '../stores/writes.ts';

const lines = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `{"n":${n},"x":"${'x'.repeat(90)}"}`);

/** A final run with a log of many batches. */
async function longRun(store: Store): Promise<RunRow> {
  const now = new Date().toISOString();
  const row = fresh({ status: 'in-progress', created_at: now, status_at: now, snapshot: 1 });
  let last = 0;
  for (let n = 0; n < 100; n += 1) {
    const end = n === 99 ? ({ status: 'completed', finished_at: now } as const) : {};
    const write = { row: { ...row, ...end, last: last + 100 }, expect: last, lines: lines(100) };
    expect(await store.commit([{ ...write, ...(last === 0 && { input: [] }) }])).toEqual(['taken']);
    last += 100;
  }
  return (await store.run(row.run_id)) ?? row;
}

/** For a reader that has no reason to look for the run, or to listen for its changes. */
const nowhere = {
  find: () => Promise.reject(new Error('not asked')),
  onChange: () => {
    throw new Error('not listened to');
  },
  stopping: false,
};

it('ends a reader of another node when the engine stops while the store is unavailable', async () => {
  const callbacks = new Set<() => void>();
  const runs = {
    stopping: false,
    find: () => Promise.reject(fail('store_unavailable')),
    onChange: (_: string, callback: () => void) => {
      callbacks.add(callback);
      return () => void callbacks.delete(callback);
    },
  };
  const source = storedSource({ run_id: newId(), last: 0, status: 'in-progress' } as RunRow);
  const cursor = new Cursor(new PageCache(await openStore('memory:')), runs, source);
  const read = cursor[Symbol.asyncIterator]().next();
  await setImmediate();
  runs.stopping = true;
  for (const callback of callbacks) callback();
  expect(await read).toEqual({ done: true, value: undefined });
  expect(callbacks.size).toBe(0);
});

describe.each(['memory:', 'sqlite::memory:'])('reading a log of %s', (url) => {
  it('happens once for all readers at the same position', async () => {
    const store = await openStore(url);
    const row = await longRun(store);
    const pages = new PageCache(store);
    const [first, second] = await Promise.all([pages.after(row.run_id, 250), pages.after(row.run_id, 250)]);
    expect(first.flatMap((batch) => batch.lines).length).toBeGreaterThan(100);
    expect(second).toBe(first);
    expect(await pages.after(row.run_id, 250)).toBe(first);
    await store.close();
  });

  it('ends with an error when the log is removed meanwhile, as a whole or from its beginning', async () => {
    for (const sweeps of [1, 100]) {
      const store = await openStore(url);
      const row = await longRun(store);
      const cursor = new Cursor(new PageCache(store), nowhere, storedSource(row));
      const seen: number[] = [];
      const reading = (async () => {
        for await (const batch of cursor) {
          // No missing events either: the next one after the last one seen, or none.
          expect(batch.first).toBe((seen.at(-1) ?? 0) + 1);
          seen.push(batch.first + batch.lines.length - 1);
          if (seen.length > 1) continue;
          await store.remove(row.run_id);
          for (let bit = 0; bit < sweeps; bit += 1) await store.sweep({ keys: '' });
        }
      })();
      await expect(reading).rejects.toMatchObject({
        kind: 'log_removed',
        message: expect.stringContaining(row.run_id),
      });
      expect(seen.length).toBeGreaterThan(0);
      await store.close();
    }
  });
});
