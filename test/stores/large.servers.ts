import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storeForAgents } from '../../src/engine/store/store-calls.ts';
import { type Started, startPostgres, startRedis } from '../support/servers.ts';
import { closedAfterEach } from './auto-close.ts';
import { append, end, fresh } from './writes.ts';

const megabytes = 100;

// With servers of their own: Redis is blocked for seconds.
for (const [name, start] of Object.entries({ redis: startRedis, postgres: startPostgres })) {
  describe(`a part of ${megabytes} MB: ${name}`, () => {
    let server: Started | undefined;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server?.stop());
    const here = (skip: (why: string) => never): string => (server ?? skip(`there is no ${name} to start`)).url;
    const { open } = closedAfterEach();

    it('is stored, or rejected by itself, and other runs continue', { timeout: 240_000 }, async ({ skip }) => {
      // A busy machine may not answer within the time of one call.
      const store = storeForAgents(await open(here(skip)), 120_000, () => true);
      const other = append(fresh(), ['1']);
      // Text that does not compress.
      const part = randomBytes((megabytes * 1e6 * 3) / 4).toString('base64');
      const line = `"${part}"`;
      const first = append(fresh(), ['1']);
      await store.commit([first, other]);
      const large = append(first.row, [line]);
      const [outcome] = await store.commit([large]);
      if (outcome === 'taken') {
        const [batch] = await store.events(first.row.run_id, 1, 1);
        expect(batch?.lines[0]?.length).toBe(line.length);
        const body = { content_type: 'application/json', body: line };
        const resource = { resource_id: large.row.run_id, session_id: large.row.session_id, run_id: null, ...body };
        const last = end(large.row, 'completed', { resources: [resource], history: ['/resources/large'] });
        expect(await store.commit([{ ...last, lines: [line] }])).toEqual(['taken']);
        expect((await store.resources([large.row.run_id]))[0]?.body.length).toBe(line.length);
      } else {
        expect(outcome).toMatchObject({ rejected: expect.any(Error) });
      }
      expect(await store.commit([append(other.row, ['2'])])).toEqual(['taken']);
    });

    it('rejects a text that exceeds the longest string, and accepts later commits', { timeout: 240_000 }, async ({
      skip,
    }) => {
      const store = await open(here(skip));
      const half = 'x'.repeat(300_000_000);
      const [outcome] = await store.commit([append(fresh(), [half, half])]);
      expect(outcome).toMatchObject({ rejected: expect.any(Error) });
      expect(await store.commit([append(fresh(), ['1'])])).toEqual(['taken']);
    });
  });
}
