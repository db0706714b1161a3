import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/core/store.ts';
import { delivery } from './contract-deliveries.ts';
import { append, end, fresh } from './writes.ts';

/** The targets of a run, which nodes change beside the writes of its execution. */
export function targetsContract(store: () => Store): void {
  const [one, two] = ['[{"url":"https://a"}]', '[{"url":"https://a"},{"url":"https://b é"}]'];

  describe('the targets of a run', () => {
    it('are those of the write that created it', async () => {
      const first = append(fresh({ targets: one }), ['1']);
      await store().commit([first]);
      expect(await store().run(first.row.run_id)).toEqual(first.row);
      expect(await store().runs({ session_id: first.row.session_id }, undefined, 1)).toEqual([first.row]);
    });

    it('are replaced, where they are as the caller read them', async () => {
      const { row } = append(fresh(), ['1']);
      await store().commit([append({ ...row, last: 0 }, ['1'])]);
      expect(await store().setTargets(row.run_id, one, two)).toBe(false);
      expect(await store().setTargets(row.run_id, null, one)).toBe(true);
      expect(await store().setTargets(row.run_id, null, two)).toBe(false);
      expect(await store().setTargets(row.run_id, one, two)).toBe(true);
      expect((await store().run(row.run_id))?.targets).toBe(two);
      expect(await store().setTargets(row.run_id, two, null)).toBe(true);
      expect(await store().run(row.run_id)).toEqual(row);
      expect(await store().setTargets('unknown', null, one)).toBe(false);
      expect(await store().run('unknown')).toBeUndefined();
    });

    it('are found by the next write that changes more than the log, which is repeated with them', async () => {
      const first = append(fresh(), ['1']);
      await store().commit([first]);
      const { run_id } = first.row;
      await store().setTargets(run_id, null, one);
      const deliveries = [delivery(1)];
      const stale = end(first.row, 'completed', { deliveries, journal: ['"j"'] });
      const next = append(stale.row, ['3'], { grown: true });
      expect(await store().commit([stale, next])).toEqual([{ targets: one }, 'fenced']);
      expect(await store().run(run_id)).toEqual({ ...first.row, targets: one });
      expect(await store().journal(run_id)).toEqual([]);
      expect(await store().deliveries({ run_id }, undefined, 5)).toEqual([]);
      await store().setTargets(run_id, one, null);
      expect(await store().commit([{ ...stale, row: { ...stale.row, targets: one } }])).toEqual([{ targets: null }]);
      expect(await store().commit([stale])).toEqual(['taken']);
      expect(await store().deliveries({ run_id }, undefined, 5)).toMatchObject([{ target: null }]);
      await store().remove(run_id);
    });

    it('are not what fences a write: of another epoch, another end or a final run it is fenced', async () => {
      const first = append(fresh(), ['1']);
      await store().commit([first]);
      const { run_id } = first.row;
      await store().setTargets(run_id, null, one);
      const late = end(first.row, 'completed');
      const other = { ...late, row: { ...late.row, epoch: 5 } };
      const ahead = end({ ...first.row, last: 7 }, 'completed');
      expect(await store().commit([other, ahead])).toEqual(['fenced', 'fenced']);
      expect(await store().commit([{ ...late, row: { ...late.row, targets: one } }])).toEqual(['taken']);
      expect(await store().commit([late])).toEqual(['fenced']);
      await store().remove(run_id);
    });

    it('do not stop a write that appends only, or that has no events, and stay as they are', async () => {
      const first = append(fresh(), ['1']);
      await store().commit([first]);
      const { run_id } = first.row;
      await store().setTargets(run_id, null, one);
      const grown = append(first.row, ['2'], { grown: true });
      expect(await store().commit([grown])).toEqual(['taken']);
      const changed = { row: { ...grown.row, attempts: 3 }, expect: 2, lines: [] };
      expect(await store().commit([changed])).toEqual(['taken']);
      expect(await store().run(run_id)).toEqual({ ...changed.row, targets: one });
    });

    it('change while another execution has the run, and when it is final', async () => {
      const first = append(fresh(), ['1']);
      await store().commit([first]);
      const { run_id } = first.row;
      const taken = append({ ...first.row, epoch: 2 }, ['2'], { from: 1 });
      await store().commit([taken]);
      expect(await store().setTargets(run_id, null, one)).toBe(true);
      const last = end({ ...taken.row, targets: one }, 'failed', { deliveries: [delivery(1, { target: 'a' })] });
      expect(await store().commit([last])).toEqual(['taken']);
      expect(await store().deliveries({ run_id }, undefined, 5)).toMatchObject([{ target: 'a' }]);
      expect(await store().setTargets(run_id, one, null)).toBe(true);
      expect((await store().run(run_id))?.targets).toBeNull();
      await store().remove(run_id);
    });

    it('are gone with the run', async () => {
      const first = append(fresh({ targets: one }), ['1']);
      await store().commit([first]);
      await store().commit([end(first.row, 'completed')]);
      expect(await store().remove(first.row.run_id)).toBe(true);
      expect(await store().setTargets(first.row.run_id, one, two)).toBe(false);
      expect(await store().run(first.row.run_id)).toBeUndefined();
    });
  });
}
