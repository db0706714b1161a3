import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OutageProxy } from '../support/outage-proxy.ts';
import { type Started, startPostgres, startRedis } from '../support/servers.ts';
import { closedAfterEach } from './auto-close.ts';
import { append, fresh, linesOf } from './writes.ts';

/** How to start each server, and a text in the request of a commit: for PostgreSQL, the name of the prepared statement. */
const kinds = {
  redis: { start: startRedis, request: 'evalsha' },
  postgres: { start: startPostgres, request: '\0commit\0' },
};

/**
 * Seconds: more than a machine with other load needs, and less than the time-outs of ten seconds that would end the same
 * calls without what is tested. Usually it is milliseconds, or the second that `close` waits.
 */
const soon = 7;

const seconds = async (what: Promise<unknown>): Promise<number> => {
  const from = performance.now();
  await what.catch(() => {});
  return (performance.now() - from) / 1_000;
};

for (const [name, { start, request }] of Object.entries(kinds)) {
  describe(`a store in a ${name} that becomes unavailable`, () => {
    const { open, closeAfter } = closedAfterEach();
    let started: Started | undefined;
    beforeAll(async () => {
      started = await start({ durable: true });
    });
    afterAll(() => started?.stop());
    const here = (skip: (why: string) => never): Started => started ?? skip(`there is no ${name} to start`);

    it('applies every commit exactly once while its server crashes twice', async ({ skip }) => {
      const server = here(skip);
      const store = await open(server.url);
      let row = fresh();
      let crash: Promise<void> | undefined;
      for (let n = 1; n <= 500; n += 1) {
        const write = append(row, [String(n)]);
        const commit = store.commit([write]);
        if (n === 150 || n === 350) {
          await crash;
          crash = server.restart();
        }
        expect(await commit).toEqual(['taken']);
        row = write.row;
      }
      await crash;
      expect(await linesOf(await open(server.url), row.run_id)).toEqual(
        Array.from({ length: 500 }, (_, n) => `${n + 1}`),
      );
    });

    it('resolves a commit whose answer was lost, and applies it once', async ({ skip }) => {
      const proxy = closeAfter(await OutageProxy.open(here(skip).url));
      const store = await open(proxy.url);
      const first = append(fresh(), ['1']);
      await store.commit([first]);
      const lost = proxy.cutAnswerTo(request);
      const second = append(first.row, ['2'], { history: ['/2'] });
      const refused = append(first.row, ['other']);
      expect(await store.commit([second, refused])).toEqual(['taken', 'fenced']);
      await lost;
      expect(await linesOf(store, first.row.run_id)).toEqual(['1', '2']);
      expect(await store.commit([append(second.row, ['3'])])).toEqual(['taken']);
    });

    it('fails reads soon while the server is unavailable, and delays commits, in order', async ({ skip }) => {
      const server = here(skip);
      const store = await open(server.url);
      const first = append(fresh(), ['1']);
      await store.commit([first]);
      await server.kill();
      const second = append(first.row, ['2']);
      const commits = [store.commit([second]), store.commit([append(second.row, ['3'])])];
      expect(await seconds(expect(store.run(first.row.run_id)).rejects.toThrow())).toBeLessThan(soon);
      expect(await seconds(expect(store.events(first.row.run_id, 0, 1)).rejects.toThrow())).toBeLessThan(soon);
      await server.restart();
      expect(await Promise.all(commits)).toEqual([['taken'], ['taken']]);
      expect(await linesOf(store, first.row.run_id)).toEqual(['1', '2', '3']);
    });

    it('closes soon while the server is unavailable, and ends all waits', async ({ skip }) => {
      const server = here(skip);
      const store = await open(server.url);
      await server.kill();
      const commits = Promise.allSettled([store.commit([append(fresh(), ['1'])]), store.commit([])]);
      const watch = expect(store.watch?.(() => {})).rejects.toThrow('the store is closed');
      expect(await seconds(store.run('any'))).toBeLessThan(soon);
      expect(await seconds(store.close())).toBeLessThan(soon);
      expect((await commits)[0]?.status).toBe('rejected');
      await watch;
      await expect(store.commit([])).rejects.toThrow('the store is closed');
      await expect(store.run('any')).rejects.toThrow();
      await server.restart();
    });

    it('closes soon when the server does not answer', async ({ skip }) => {
      const proxy = closeAfter(await OutageProxy.open(here(skip).url));
      const store = await open(proxy.url);
      await store.commit([append(fresh(), ['1'])]);
      await store.watch?.(() => {});
      // No connection is opened later, because the proxy would not mute it.
      await store.run('any');
      proxy.mute();
      const waiting = Promise.allSettled([store.commit([append(fresh(), ['1'])]), store.run('any')]);
      expect(await seconds(store.close())).toBeLessThan(soon);
      expect((await waiting).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    });
  });
}
