import { join } from 'node:path';
import { EventSource } from 'eventsource';
import { concatMap, interval, map, range, take } from 'rxjs';
import { afterAll, describe, expect, it } from 'vitest';
import type { Event } from '../../../src/index.ts';
import { agent } from '../../support/agents.ts';
import { CuttingProxy } from '../../support/cutting-proxy.ts';
import { newFolder } from '../../support/folder.ts';
import { ask, eventsOf, finished, type Served, serveApi } from '../../support/serve.ts';

const folder = newFolder(afterAll);

const total = 1_000;
const slow = agent('slow', () =>
  interval(1).pipe(
    take(total / 10),
    concatMap((n) => range(n * 10, 10)),
    map((n) => `t${n} `),
  ),
);

/** Follows a run with EventSource through a proxy that cuts connections, until the terminal event. */
function follow(url: string): Promise<{ ids: number[]; events: Event[] }> {
  return new Promise((resolve) => {
    const ids: number[] = [];
    const events: Event[] = [];
    const source = new EventSource(url);
    source.onmessage = ({ data, lastEventId }) => {
      const event: Event = JSON.parse(data);
      ids.push(Number(lastEventId));
      events.push(event);
      if (event.type !== 'run.completed') return;
      source.close();
      resolve({ ids, events });
    };
  });
}

describe.each(['memory:', `sqlite:${join(folder, 'resume.db')}`])(
  'a reader that is cut off 20 times, on %s',
  (store) => {
    const start = async (served: Served): Promise<string> =>
      (await (await served.post('/runs', ask('slow', 'go', { mode: 'async' }))).json()).run_id;

    async function cutTwentyTimes(served: Served, run_id: string): Promise<void> {
      // Uneven lengths, so that cuts are between frames, inside frames, and inside the head of the response.
      const bytes = Array.from({ length: 20 }, (_, n) => (n === 7 ? 40 : 2_500 + n * 137));
      const proxy = await CuttingProxy.open(served.url, bytes);
      const { ids, events } = await follow(`${proxy.url}/runs/${run_id}/events`);
      await proxy.close();
      expect(proxy.cuts).toBe(20);
      expect(ids).toEqual(Array.from({ length: ids.length }, (_, index) => index + 1));
      expect(events).toEqual(await eventsOf(served, run_id));
      expect(events.filter(({ type }) => type === 'message.part')).toHaveLength(total);
    }

    it('gets exactly the events of a live run', async () => {
      const served = await serveApi([slow], { store, retry: 1 });
      await cutTwentyTimes(served, await start(served));
    });

    it('gets exactly the events of a final run', async () => {
      const served = await serveApi([slow], { store, retry: 1 });
      const run_id = await start(served);
      await finished(served, run_id);
      await cutTwentyTimes(served, run_id);
    });
  },
);

it('a polyfill of EventSource that sends its last id in the address gets the rest', async () => {
  const served = await serveApi([agent('echo', (input) => input)]);
  const { run_id } = await (await served.post('/runs', ask('echo'))).json();
  const events = async (query: string): Promise<string> =>
    (await served.get(`/runs/${run_id}/events?${query}`, { accept: 'text/event-stream' })).text();
  expect((await events('lastEventId=3')).match(/^id: \d+$/gm)?.[0]).toBe('id: 4');
  expect((await events('lastEventId=')).match(/^id: \d+$/gm)?.[0]).toBe('id: 1');
  expect((await events('after=1&lastEventId=4')).match(/^id: \d+$/gm)?.[0]).toBe('id: 5');
  expect((await served.get(`/runs/${run_id}/events?lastEventId=a`)).status).toBe(400);
});
