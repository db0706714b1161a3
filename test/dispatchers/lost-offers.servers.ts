import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { queueSchema } from '../../src/dispatchers/bullmq/postgres-check.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { TestNode } from './test-node.ts';

/** Deletes all jobs of a queue, as a server does that restarts without its data. */
const wipes: Record<string, (url: string, name: string) => Promise<void>> = {
  Redis: async (url, name) => {
    const redis = new Redis(url);
    const names = await redis.keys(`{${name}}:bull:*`);
    if (names.length > 0) await redis.unlink(names);
    await redis.quit();
  },
  PostgreSQL: async (url, name) => {
    const client = new Client(url);
    await client.connect();
    const schema = queueSchema(name);
    const tables =
      "SELECT string_agg(schemaname || '.' || tablename, ', ') AS all FROM pg_tables WHERE schemaname = $1";
    const { rows } = await client.query(`${tables} AND tablename <> 'migration'`, [schema]);
    await client.query(`TRUNCATE ${rows[0].all}`);
    await client.end();
  },
};

for (const [kind, place] of Object.entries({ Redis: await redisPlace(), PostgreSQL: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`runs whose offers were lost by ${kind}`, () => {
    afterAll(() => place?.remove());
    const { url = '', name = '' } = place ?? {};
    const wipe = (): Promise<void> => wipes[kind]?.(url, name) ?? Promise.resolve();

    it('are taken when they are offered again', async () => {
      const node = await TestNode.open(url, { slots: 1 });
      const [busy, lost] = [randomUUID(), randomUUID()];
      await node.offer(busy, lost);
      const held = await node.taken(busy);
      await wipe();
      held.end();
      await node.isSettled(busy);
      await node.offer(lost);
      (await node.taken(lost)).end();
      await node.isSettled(lost);
      expect(node.runs).toEqual([busy, lost]);
    });

    it('continue where they execute, and the node takes others', async () => {
      const node = await TestNode.open(url);
      const [held, next] = [randomUUID(), randomUUID()];
      await node.offer(held);
      const { end } = await node.taken(held);
      await wipe();
      // Offered again by a node that finds no job for it. This node executes it already, and does not start it twice.
      await node.offer(held, next);
      (await node.taken(next)).end();
      await node.isSettled(next);
      expect(node.runs).toEqual([held, next]);
      end();
      await node.isSettled(held);
    });
  });
}
