import { expect, it } from 'vitest';
import type { Store } from '../../src/core/ports/store.ts';
import { append, end, fresh, numbered } from './writes.ts';

/**
 * A damaged run harms no other run. `damage` makes the stored data of a run unreadable, as a failing disk would, while
 * the store is closed.
 */
export function damageContract(
  name: string,
  open: () => Promise<Store>,
  damage: (run_id: string) => Promise<void>,
): void {
  it(`a store: ${name}, opens, lists, writes and clears other runs where one is damaged`, async () => {
    const session_id = `damaged-${fresh().run_id}`;
    const [first, bad, last] = [1, 2, 3].map(() => append(fresh({ session_id }), ['1'], { journal: ['{}'] }));
    if (!first || !bad || !last) throw new Error('three runs make three writes');
    let store = await open();
    try {
      await store.commit([first, bad, last]);
      await store.close();
      await damage(bad.row.run_id);
      store = await open();
      const others = (rows: { run_id: string }[]): string[] =>
        rows.map(({ run_id }) => run_id).filter((id) => id !== bad.row.run_id);
      const ids = [first.row.run_id, last.row.run_id];
      expect(others(await store.unfinished(session_id, '', 10))).toEqual(ids);
      expect(others(await store.unfinished(undefined, '', 100_000))).toEqual(expect.arrayContaining(ids));
      expect(others(await store.runs({ session_id }, undefined, 10))).toEqual(ids.toReversed());
      expect(numbered(await store.events(first.row.run_id, 0, 10))).toEqual([[1, '1']]);
      const finished_at = '2000-01-01T00:00:00.000Z';
      const over = append({ ...first.row, status: 'failed', finished_at }, ['2']);
      expect(await store.commit([append(last.row, ['2'], { grown: true }), over])).toEqual(['taken', 'taken']);
      while (await store.sweep({ keys: '', runs: '2001-01-01T00:00:00.000Z' })) await Promise.resolve();
      expect(await store.run(first.row.run_id)).toBeUndefined();
      expect(await store.commit([end({ ...last.row, last: 2 }, 'completed')])).toEqual(['taken']);
      expect(await store.remove(last.row.run_id)).toBe(true);
    } finally {
      await store.close();
    }
  });
}
