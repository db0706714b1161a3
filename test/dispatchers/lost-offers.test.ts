import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { queueSchema } from '../../src/dispatchers/bullmq/postgres-queue.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { Seat } from './seat.ts';

/** Makes a queue lose all that was offered, as a server does that comes back without its data. */
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
  describe.skipIf(place === undefined)(`runs whose offers ${kind} has lost`, () => {
    afterAll(() => place?.remove());
    const { url = '', name = '' } = place ?? {};
    const wipe = (): Promise<void> => wipes[kind]?.(url, name) ?? Promise.resolve();

    it('are taken when they are offered again', async () => {
      const seat = await Seat.open(url, { slots: 1 });
      const [busy, lost] = [randomUUID(), randomUUID()];
      await seat.offer(busy, lost);
      const held = await seat.taken(busy);
      await wipe();
      held.end();
      await seat.gone(busy);
      await seat.offer(lost);
      (await seat.taken(lost)).end();
      await seat.gone(lost);
      expect(seat.runs).toEqual([busy, lost]);
    });

    it('stay in hand where they are at work, and the process takes others', async () => {
      const seat = await Seat.open(url);
      const [held, next] = [randomUUID(), randomUUID()];
      await seat.offer(held);
      const { end } = await seat.taken(held);
      await wipe();
      // Offered again by a node that finds no sign of it: this process has it already, and begins it no second time.
      await seat.offer(held, next);
      (await seat.taken(next)).end();
      await seat.gone(next);
      expect(seat.runs).toEqual([held, next]);
      end();
      await seat.gone(held);
    });
  });
}
