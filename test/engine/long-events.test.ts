import { type Observable, of, range } from 'rxjs';
import { concatMap, delay } from 'rxjs/operators';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fullChars } from '../../src/core/lines.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { defineAgent } from '../../src/index.ts';
import type { Event } from '../../src/schema/event.ts';
import { openStore } from '../../src/stores/open.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { begin, eventsOf, toTheEnd } from '../support/lives.ts';

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
    const ids = events.flatMap((event, index) => (JSON.stringify(event).length > fullChars ? [index + 1] : []));
    expect(ids).toEqual([events.length - 1, events.length]);
    for (let after = 0; after < events.length; after += 1) {
      const page = (await store.events(run_id, after, 1_000)).flatMap(({ first, lines }) =>
        lines.map((line, index) => ({ id: first + index, isLong: line.length > fullChars })),
      );
      const unread = page.filter(({ id }) => id > after);
      expect(unread[0]?.id).toBe(after + 1);
      if (unread.some(({ isLong }) => isLong)) expect(unread[0]?.isLong).toBe(true);
    }
  });

  it.each([100, 7_000, 9_000, 12_000, 16_000, 17_000, 40_000])(
    'leaves the figures of the run with its final event, after %i characters',
    async (chars) => {
      const { store } = await run(url, says, String(chars));
      expect(await store.figures(['says'])).toMatchObject([{ completed: 1, failed: 0 }]);
    },
  );
});
