import { map } from 'rxjs';
import { expect, it } from 'vitest';
import { MemoryStore } from '../../../src/stores/memory/memory-store.ts';
import { agent } from '../../support/agents.ts';
import { ask, serveApi } from '../../support/serve.ts';

const asks = agent('asks', (_, context) => context.await('x'.repeat(400_000)).pipe(map(() => 'done')));

/** A store that counts the reads of logs. */
class Counted extends MemoryStore {
  reads = 0;

  override async events(...of: Parameters<MemoryStore['events']>): ReturnType<MemoryStore['events']> {
    this.reads += 1;
    return super.events(...of);
  }
}

it('a page of runs with long questions ends early, and the next one goes on', async () => {
  const store = new Counted();
  const served = await serveApi([asks], { store });
  const ids: string[] = [];
  for (let n = 0; n < 7; n += 1) ids.unshift((await (await served.post('/runs', ask('asks'))).json()).run_id);
  const found: string[][] = [];
  store.reads = 0;
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const text = await (await served.get(`/runs?limit=5${cursor && `&cursor=${cursor}`}`)).text();
    expect(text.length).toBeLessThan(1_500_000);
    const page = JSON.parse(text);
    found.push(page.runs.map(({ run_id }: { run_id: string }) => run_id));
    cursor = page.next_cursor;
  }
  expect(found.map(({ length }) => length)).toEqual([3, 3, 1]);
  expect(found.flat()).toEqual(ids);
  expect(store.reads).toBe(7);
});
