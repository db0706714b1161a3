import { describe, expect, it } from 'vitest';
import { OutageProxy } from '../support/outage-proxy.ts';
import { closedAfterEach } from './auto-close.ts';
import { NotificationRecorder } from './notification-recorder.ts';
import { append, end, fresh } from './writes.ts';

/** The notifications of a shared store. */
export function notificationsContract(name: string, url: string): void {
  describe(`a subscriber of a store in ${name}`, () => {
    const { open, closeAfter } = closedAfterEach();

    it('is notified of writes by this process and by others', async () => {
      const [one, other] = [await open(url), await open(url)];
      const recorder = await NotificationRecorder.of(one);
      const first = append(fresh(), ['1', '2']);
      await one.commit([first]);
      await recorder.notified(first.row.run_id, { epoch: 1, last: 2, final: false, changed: true });
      await recorder.follow(first.row.run_id);
      const taken = { ...first.row, epoch: 2 };
      await other.commit([{ row: taken, from: 1, expect: 2, lines: [] }]);
      await recorder.notified(first.row.run_id, { epoch: 2, last: 2, final: false, changed: true });
      const grown = append(taken, ['3'], { grown: true });
      await other.commit([grown]);
      await recorder.notified(first.row.run_id, { epoch: 2, last: 3, final: false, changed: false, forwarded: false });
      await other.commit([append(grown.row, ['4']), end({ ...grown.row, last: 4 }, 'failed')]);
      await recorder.notified(first.row.run_id, { epoch: 2, last: 5, final: true, changed: true });
    });

    it('hears of the tokens of the runs that it follows, and not of other runs', async () => {
      const [one, other] = [await open(url), await open(url)];
      const [followed, foreign] = [append(fresh(), ['1'], { node: 'n' }), append(fresh(), ['1'], { node: 'n' })];
      await other.commit([followed, foreign]);
      const recorder = await NotificationRecorder.of(one, [followed.row.run_id]);
      const grow = ({ row }: typeof followed, last: number) => append({ ...row, last }, ['token'], { grown: true });
      await other.commit([grow(foreign, 1), grow(followed, 1)]);
      await recorder.notified(followed.row.run_id, { last: 2, changed: false });
      await other.commit([append({ ...foreign.row, last: 2 }, ['2']), append({ ...followed.row, last: 2 }, ['2'])]);
      await recorder.notified(followed.row.run_id, { last: 3, changed: true });
      expect(recorder.runs).toEqual([followed.row.run_id]);
    });

    it('hears no more of a run that it has unfollowed as often as followed', async () => {
      const [one, other] = [await open(url), await open(url)];
      const [left, kept] = [append(fresh(), ['1'], { node: 'n' }), append(fresh(), ['1'], { node: 'n' })];
      await other.commit([left, kept]);
      const [first, second] = [left.row.run_id, kept.row.run_id];
      const recorder = await NotificationRecorder.of(one, [first, first, second]);
      const grow = (last: number) =>
        other.commit([left, kept].map(({ row }) => append({ ...row, last }, ['token'], { grown: true })));
      recorder.unfollow(first);
      await grow(1);
      for (const run_id of [first, second]) await recorder.notified(run_id, { last: 2 });
      recorder.unfollow(first);
      // Subscribed after the channel was left, on the same connection.
      await recorder.follow('another');
      await grow(2);
      await recorder.notified(second, { last: 3 });
      await grow(3);
      await recorder.notified(second, { last: 4 });
      expect(recorder.last(first)).toBe(2);
    });

    it('hears without following of runs that wait for a node, of what is left for a node, and of runs that are taken', async () => {
      const [one, other] = [await open(url), await open(url)];
      const recorder = await NotificationRecorder.of(one, []);
      const [waiting, first] = [append(fresh(), ['1'], { node: null }), append(fresh(), ['1'], { node: 'n' })];
      await other.commit([waiting, first]);
      await recorder.notified(waiting.row.run_id, { waits: true });
      const { row } = first;
      await other.commit([{ row, expect: 1, grown: true, lines: [], journal: ['{}'] }]);
      await recorder.notified(row.run_id, { forwarded: true });
      await other.commit([{ row: { ...row, epoch: 2 }, from: 1, expect: 1, lines: [] }]);
      await recorder.notified(row.run_id, { epoch: 2 });
    });

    it('is subscribed again to the runs that it follows after an interruption', async () => {
      const proxy = closeAfter(await OutageProxy.open(url));
      const store = await open(url);
      const first = append(fresh(), ['1']);
      await store.commit([first]);
      const { row } = first;
      const recorder = await NotificationRecorder.of(await open(proxy.url), [row.run_id]);
      for (let round = 1; round <= 3; round += 1) {
        proxy.cut();
        await recorder.waitFor(() => recorder.missed >= round);
        await store.commit([append({ ...row, last: round }, ['token'], { grown: true })]);
        await recorder.notified(row.run_id, { last: round + 1, changed: false });
      }
    });

    it('is told of a change that another write of the same commit follows', async () => {
      const store = await open(url);
      const first = append(fresh(), ['1'], { node: 'n' });
      const recorder = await NotificationRecorder.of(store, [first.row.run_id]);
      const grown = append(first.row, ['2'], { grown: true });
      await store.commit([first, grown]);
      await recorder.notified(first.row.run_id, { last: 2, changed: true });
    });

    it('is told of a write that only adds to the journal, also where a change of the same run comes just before it', async () => {
      const [one, other] = [await open(url), await open(url)];
      const recorder = await NotificationRecorder.of(one);
      const first = append(fresh(), ['1']);
      await one.commit([first]);
      await recorder.notified(first.row.run_id, { last: 1, forwarded: false });
      const forwards = { row: first.row, expect: 1, grown: true, lines: [], journal: ['{"a":1}'] };
      await other.commit([forwards]);
      await recorder.notified(first.row.run_id, { last: 1, final: false, changed: false, forwarded: true });
      const changed = append({ ...first.row, last: 1 }, ['2']);
      await other.commit([changed, { ...forwards, expect: 2 }]);
      await recorder.notified(first.row.run_id, { last: 2, changed: true });
      await recorder.notified(first.row.run_id, { last: 2, forwarded: true });
    });

    it('keeps what the node of a run has changed in its row, where another one adds to its journal', async () => {
      const [one, other] = [await open(url), await open(url)];
      const first = append(fresh(), ['1']);
      await one.commit([first]);
      const rests = { ...first.row, status: 'awaiting' as const, rests_at: first.row.created_at, attempts: 2 };
      expect(await one.commit([append(rests, [])])).toEqual(['taken']);
      const forwards = { row: first.row, expect: 1, grown: true, lines: [], journal: ['{"a":1}'] };
      expect(await other.commit([forwards])).toEqual(['taken']);
      expect(await other.run(first.row.run_id)).toEqual(rests);
      expect(await one.journal(first.row.run_id)).toEqual(forwards.journal);
    });

    it('is not notified of refused writes', async () => {
      const store = await open(url);
      const recorder = await NotificationRecorder.of(store);
      const [refused, taken] = [append({ ...fresh(), last: 7 }, ['8']), append(fresh(), ['1'])];
      expect(await store.commit([refused])).toEqual(['fenced']);
      expect(await store.commit([refused, taken])).toEqual(['fenced', 'taken']);
      await recorder.notified(taken.row.run_id, { last: 1 });
      expect(recorder.runs).not.toContain(refused.row.run_id);
    });

    it('is notified of every run of a large commit', async () => {
      const store = await open(url);
      const recorder = await NotificationRecorder.of(await open(url));
      const writes = Array.from({ length: 1_200 }, () => append(fresh(), ['1']));
      await store.commit(writes);
      for (const { row } of writes) await recorder.notified(row.run_id, { last: 1 });
    });

    it('is told after an interruption that any run may have changed', async () => {
      const proxy = closeAfter(await OutageProxy.open(url));
      const store = await open(url);
      const recorder = await NotificationRecorder.of(await open(proxy.url));
      for (let round = 1; round <= 3; round += 1) {
        proxy.cut();
        await recorder.waitFor(() => recorder.missed >= round);
        const write = append(fresh(), ['1']);
        await store.commit([write]);
        await recorder.notified(write.row.run_id, { last: 1 });
      }
    });

    it('shares one connection with the others, which closes after the last one unsubscribes', async () => {
      const proxy = closeAfter(await OutageProxy.open(url));
      const store = await open(proxy.url);
      await store.run('any');
      const before = proxy.connections;
      const all = await Promise.all(Array.from({ length: 5 }, () => NotificationRecorder.of(store)));
      expect(proxy.connections).toBe(before + 1);
      const [one, ...others] = all;
      for (const other of others) await other.end();
      await others[0]?.end();
      const write = append(fresh(), ['1']);
      await (await open(url)).commit([write]);
      await one?.notified(write.row.run_id, { last: 1 });
      expect(others.flatMap(({ runs }) => runs)).toEqual([]);
      await one?.end();
      await proxy.until(before);
      const again = await NotificationRecorder.of(store);
      const next = append(write.row, ['2']);
      await store.commit([next]);
      await again.notified(write.row.run_id, { last: 2 });
    });

    it('does not harm other subscribers by throwing', async () => {
      const store = await open(url);
      await store.watch?.(() => {
        throw new Error('mine');
      });
      const recorder = await NotificationRecorder.of(store);
      for (let row = fresh(); row.last < 3; row = { ...row, last: row.last + 1 }) {
        expect(await store.commit([append(row, ['1'])])).toEqual(['taken']);
        await recorder.notified(row.run_id, { last: row.last + 1 });
      }
    });

    it('is unsubscribed when the store closes', async () => {
      const proxy = closeAfter(await OutageProxy.open(url));
      const store = await open(proxy.url);
      await NotificationRecorder.of(store);
      await store.close();
      await proxy.until(0);
      await expect(store.watch?.(() => {})).rejects.toThrow('the store is closed');
    });
  });
}
