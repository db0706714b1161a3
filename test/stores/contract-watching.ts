import { describe, expect, it } from 'vitest';
import { OutageProxy } from '../support/outage-proxy.ts';
import { Hearing } from './hearing.ts';
import { opening } from './opened.ts';
import { append, end, fresh } from './writes.ts';

/** What holds for whoever watches a store that is shared. */
export function watchingContract(name: string, url: string): void {
  describe(`who watches a store in ${name}`, () => {
    const { open, closing } = opening();

    it('hears of what this process and others have written to runs', async () => {
      const [one, other] = [await open(url), await open(url)];
      const hearing = await Hearing.of(one);
      const first = append(fresh(), ['1', '2']);
      await one.commit([first]);
      await hearing.of(first.row.run_id, { epoch: 1, last: 2, final: false });
      const taken = { ...first.row, epoch: 2 };
      await other.commit([{ row: taken, from: 1, expect: 2, lines: [] }]);
      await hearing.of(first.row.run_id, { epoch: 2, last: 2, final: false });
      const grown = append(taken, ['3'], { grown: true });
      await other.commit([grown]);
      await hearing.of(first.row.run_id, { epoch: 2, last: 3, final: false });
      await other.commit([append(grown.row, ['4']), end({ ...grown.row, last: 4 }, 'failed')]);
      await hearing.of(first.row.run_id, { epoch: 2, last: 5, final: true });
    });

    it('hears nothing of what was refused', async () => {
      const store = await open(url);
      const hearing = await Hearing.of(store);
      const [refused, taken] = [append({ ...fresh(), last: 7 }, ['8']), append(fresh(), ['1'])];
      expect(await store.commit([refused])).toEqual(['fenced']);
      expect(await store.commit([refused, taken])).toEqual(['fenced', 'taken']);
      await hearing.of(taken.row.run_id, { last: 1 });
      expect(hearing.runs).not.toContain(refused.row.run_id);
    });

    it('hears of every run of a large commit', async () => {
      const store = await open(url);
      const hearing = await Hearing.of(await open(url));
      const writes = Array.from({ length: 1_200 }, () => append(fresh(), ['1']));
      await store.commit(writes);
      for (const { row } of writes) await hearing.of(row.run_id, { last: 1 });
    });

    it('hears what it has missed while it was cut off, as that something may have moved', async () => {
      const proxy = closing(await OutageProxy.open(url));
      const store = await open(url);
      const hearing = await Hearing.of(await open(proxy.url));
      for (let round = 1; round <= 3; round += 1) {
        proxy.cut();
        await hearing.until(() => hearing.missed >= round);
        const write = append(fresh(), ['1']);
        await store.commit([write]);
        await hearing.of(write.row.run_id, { last: 1 });
      }
    });

    it('shares one connection with all others, which goes when the last one ends', async () => {
      const proxy = closing(await OutageProxy.open(url));
      const store = await open(proxy.url);
      await store.run('any');
      const before = proxy.connections;
      const all = await Promise.all(Array.from({ length: 5 }, () => Hearing.of(store)));
      expect(proxy.connections).toBe(before + 1);
      const [one, ...others] = all;
      for (const other of others) await other.end();
      await others[0]?.end();
      const write = append(fresh(), ['1']);
      await (await open(url)).commit([write]);
      await one?.of(write.row.run_id, { last: 1 });
      expect(others.flatMap(({ runs }) => runs)).toEqual([]);
      await one?.end();
      await proxy.until(before);
      const again = await Hearing.of(store);
      const next = append(write.row, ['2']);
      await store.commit([next]);
      await again.of(write.row.run_id, { last: 2 });
    });

    it('does not harm others by throwing', async () => {
      const store = await open(url);
      await store.watch?.(() => {
        throw new Error('mine');
      });
      const hearing = await Hearing.of(store);
      for (let row = fresh(); row.last < 3; row = { ...row, last: row.last + 1 }) {
        expect(await store.commit([append(row, ['1'])])).toEqual(['taken']);
        await hearing.of(row.run_id, { last: row.last + 1 });
      }
    });

    it('ends with the store', async () => {
      const proxy = closing(await OutageProxy.open(url));
      const store = await open(proxy.url);
      await Hearing.of(store);
      await store.close();
      await proxy.until(0);
      await expect(store.watch?.(() => {})).rejects.toThrow('the store is closed');
    });
  });
}
