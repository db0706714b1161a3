import { expect, it } from 'vitest';
import { fullChars } from '../../src/core/lines.ts';
import type { Store } from '../../src/core/store.ts';
import { append, end, fresh, numbered } from './writes.ts';

/** Large and unusual values. */
export function extremesContract(store: () => Store): void {
  it('replays long lines from any event', async () => {
    const lines = Array.from({ length: 20 }, (_, n) => `"${n}${'ü'.repeat(9_000)}"`);
    const first = append(fresh(), lines.slice(0, 3));
    let row = first.row;
    const rest = lines.slice(3).map((line) => {
      const write = append(row, [line]);
      row = write.row;
      return write;
    });
    await store().commit([first, ...rest]);
    for (const after of [0, 1, 2, 3, 10, 19]) {
      const seen: string[] = [];
      for (let cursor = after; cursor < 20; cursor = after + seen.length) {
        const page = numbered(await store().events(row.run_id, cursor, 1000)).filter(([seq]) => seq > cursor);
        expect(page.length).toBeGreaterThan(0);
        seen.push(...page.map(([, line]) => line));
      }
      expect(seen).toEqual(lines.slice(after));
    }
    expect(await store().events(row.run_id, 20, 1000)).toEqual([]);
  });

  it('begins a page with each long event, which readers of all positions before it share', async () => {
    const long = `"${'x'.repeat(fullChars)}"`;
    let row = fresh({ status: 'in-progress' });
    for (const lines of [['1'], ['2', '3'], [long], ['5'], ['6']]) {
      const write = append(row, lines, row.last === 0 ? {} : { grown: true });
      expect(await store().commit([write])).toEqual(['taken']);
      row = write.row;
    }
    const last = { ...end(row, 'cancelled'), lines: [long] };
    expect(await store().commit([last])).toEqual(['taken']);
    const pages = [0, 1, 2, 3, 4, 5, 6].map((after) => store().events(row.run_id, after, 1_000));
    const unread = (await Promise.all(pages)).map((page, after) => numbered(page).filter(([id]) => id > after));
    expect(unread.map((page) => page[0])).toEqual(
      ['1', '2', '3', long, '5', '6', long].map((line, index) => [index + 1, line]),
    );
    expect(unread.flatMap((page) => page.slice(1)).filter(([, line]) => line === long)).toEqual([]);
  });

  it('accepts commits of any size', async () => {
    for (let n = 0; n < 3; n += 1) expect(await store().commit([])).toEqual([]);
    const big = append(fresh(), [`"${'x'.repeat(5_000_000)}"`]);
    const many = Array.from({ length: 1_200 }, () => append(fresh(), ['1']));
    expect(await store().commit([big, ...many])).toEqual(Array(1_201).fill('taken'));
    expect((await store().events(big.row.run_id, 0, 1))[0]?.lines[0]).toHaveLength(5_000_002);
    expect((await store().run(many.at(-1)?.row.run_id ?? ''))?.last).toBe(1);
  });

  it('keeps a URL that no server could store from harming other writes', async () => {
    const odd = append(fresh(), ['1'], {
      history: ['http://a/\0', 'http://b/\ud800', `http://a/${'x'.repeat(9_000)}`],
    });
    const other = append(fresh(), ['1']);
    expect(await store().commit([odd, other])).toEqual(['taken', 'taken']);
    const { history } = (await store().session(odd.row.session_id)) ?? {};
    expect(history).toHaveLength(3);
    expect(history?.[2]).toHaveLength(9_009);
  });
}
