import { concat, of, range } from 'rxjs';
import { concatMap, delay, map } from 'rxjs/operators';
import { describe, expect, it, onTestFinished } from 'vitest';
import { defineAgent } from '../../src/index.ts';
import { openStore } from '../../src/stores/open.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { begin, eventsOf, toTheEnd } from '../support/lives.ts';

/** Characters from which on an event is long. */
const long = 16 * 1024;

/** 20 turns of 20 tokens: the events that repeat the text have 40,000 characters. */
const talks = defineAgent({ name: 'talks', description: 'Talks at length.' }, () =>
  range(0, 20).pipe(
    concatMap((turn) =>
      concat(of(...Array.from({ length: 20 }, (_, n) => `${turn}.${n}`.padEnd(100, '.')))).pipe(delay(0)),
    ),
    map((content) => ({ content })),
  ),
);

describe.each(['memory:', 'sqlite::memory:'])('an event that is long, on %s', (url) => {
  it('is a page of its own, which readers of all positions before it share', async () => {
    const store = await openStore(url);
    const engine = await startEngine([talks], store);
    onTestFinished(() => store.close());
    const run_id = await begin(engine, 'talks');
    await toTheEnd(engine, run_id);
    const events = await eventsOf(engine, run_id);
    await engine.stop();
    const ids = events.flatMap((event, index) => (JSON.stringify(event).length > long ? [index + 1] : []));
    expect(ids).toEqual([events.length - 1, events.length]);
    for (let after = 0; after < events.length; after += 1) {
      const page = (await store.events(run_id, after, 1_000)).flatMap(({ first, lines }) =>
        lines.map((line, index) => ({ id: first + index, isLong: line.length > long })),
      );
      const unread = page.filter(({ id }) => id > after);
      expect(unread[0]?.id).toBe(after + 1);
      // Several long events may share a page, but no other event comes before them.
      if (unread.some(({ isLong }) => isLong)) expect(unread[0]?.isLong).toBe(true);
    }
  });
});
