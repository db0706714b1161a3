import { type Observable, of, range } from 'rxjs';
import { concatMap, delay } from 'rxjs/operators';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../src/core/store.ts';
import { defineAgent } from '../../src/index.ts';
import type { Event } from '../../src/schema/event.ts';
import { openStore } from '../../src/stores/open.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { append, end, fresh, numbered } from '../stores/writes.ts';
import { begin, eventsOf, toTheEnd } from '../support/lives.ts';

/** Characters from which on an event is long. */
const long = 16 * 1024;

/** 20 turns of 20 tokens: an event that repeats the text has 40,000 characters. */
const talk = (): Observable<string> =>
  range(0, 20).pipe(
    concatMap((turn) => of(...Array.from({ length: 20 }, (_, n) => `${turn}.${n}`.padEnd(100, '.'))).pipe(delay(0))),
  );
const talks = defineAgent({ name: 'talks', description: 'Talks at length.' }, talk);
/** Says two halves of a text in one turn. */
const says = defineAgent({ name: 'says', description: 'Says as many characters as it is asked for.' }, ([message]) => {
  const half = 'x'.repeat(Number(message?.parts[0]?.content) / 2);
  return [half, half];
});

interface Told {
  readonly store: Store;
  readonly run_id: string;
  readonly events: Event[];
}

async function run(url: string, agent: typeof talks, text?: string): Promise<Told> {
  const store = await openStore(url);
  const engine = await startEngine([agent], store);
  onTestFinished(() => store.close());
  const run_id = await begin(engine, agent.manifest.name, text);
  await toTheEnd(engine, run_id);
  const events = await eventsOf(engine, run_id);
  await engine.stop();
  return { store, run_id, events };
}

describe.each(['memory:', 'sqlite::memory:'])('an event that is long, on %s', (url) => {
  it('begins a page, which readers of all positions before it share', async () => {
    const { store, run_id, events } = await run(url, talks);
    const ids = events.flatMap((event, index) => (JSON.stringify(event).length > long ? [index + 1] : []));
    expect(ids).toEqual([events.length - 1, events.length]);
    for (let after = 0; after < events.length; after += 1) {
      const page = (await store.events(run_id, after, 1_000)).flatMap(({ first, lines }) =>
        lines.map((line, index) => ({ id: first + index, isLong: line.length > long })),
      );
      const unread = page.filter(({ id }) => id > after);
      expect(unread[0]?.id).toBe(after + 1);
      if (unread.some(({ isLong }) => isLong)) expect(unread[0]?.isLong).toBe(true);
    }
  });

  it('is in a row of its own where its write changes the status as well', async () => {
    const store = await openStore(url);
    onTestFinished(() => store.close());
    const created = append(fresh({ status: 'in-progress' }), ['"1"']);
    const grown = append(created.row, ['"2"', '"3"'], { grown: true });
    const last = end(grown.row, 'cancelled');
    const lines = [`"${'x'.repeat(long)}"`];
    for (const write of [created, grown, { ...last, lines }]) expect(await store.commit([write])).toEqual(['taken']);
    const pages = [0, 1, 2, 3].map((after) => store.events(last.row.run_id, after, 1_000));
    const unread = (await Promise.all(pages)).map((page, after) => numbered(page).filter(([id]) => id > after));
    expect(unread.map((page) => page.map(([id]) => id))).toEqual([expect.arrayContaining([1]), [2, 3], [3], [4]]);
    expect(unread[3]).toEqual([[4, lines[0]]]);
    expect(unread[0]?.some(([id]) => id === 4)).toBe(false);
  });

  it.each([100, 7_000, 9_000, 12_000, 16_000, 17_000, 40_000])(
    'leaves the figures of the run with its final event, after %i characters',
    async (chars) => {
      const { store } = await run(url, says, String(chars));
      expect(await store.figures(['says'])).toMatchObject([{ completed: 1, failed: 0 }]);
    },
  );
});
