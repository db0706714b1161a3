import { afterAll, describe, expect, it } from 'vitest';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { closedAfterEach } from './auto-close.ts';
import { expectSteady, shortest } from './steady-cost.ts';
import { append, end, fresh } from './writes.ts';

for (const [name, place] of Object.entries({ redis: await redisPlace(), postgres: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`the list of an agent’s runs in a rare status: ${name}`, () => {
    afterAll(() => place?.remove());
    const { open } = closedAfterEach();

    it('costs the same, however many other runs the agent has', async () => {
      const store = await open(place?.url ?? '');
      const listed = async (others: number): Promise<number> => {
        const agent_name = `lists-${fresh().run_id}`;
        const rare = append(fresh({ agent_name }), ['1']);
        await store.commit([rare, end(rare.row, 'failed')]);
        for (let n = 0; n < others; n += 500) {
          const part = Array.from({ length: Math.min(500, others - n) }, () => append(fresh({ agent_name }), ['1']));
          await store.commit(part);
          await store.commit(part.map(({ row }) => end(row, 'completed')));
        }
        const best = await shortest(store, 7, async () => {
          const rows = await store.runs({ agent_name, status: 'failed' }, undefined, 20);
          expect(rows.map(({ run_id }) => run_id)).toEqual([rare.row.run_id]);
          expect(await store.runs({ agent_name, status: 'awaiting' }, undefined, 20)).toEqual([]);
        });
        expect(await store.runs({ agent_name, status: 'completed' }, undefined, 10_000)).toHaveLength(others);
        return best;
      };
      // Reading all of them would take a hundred times as long.
      await expectSteady(listed, [50, 5_000]);
    });

    it('has all matching runs of a session among many others', async () => {
      const store = await open(place?.url ?? '');
      const session_id = 'many';
      const rows = Array.from({ length: 1_300 }, (_, n) =>
        fresh({ session_id, agent_name: n % 400 === 7 ? 'rare' : 'usual' }),
      );
      for (let n = 0; n < rows.length; n += 500) {
        await store.commit(rows.slice(n, n + 500).map((row) => append(row, ['1'])));
      }
      const rare = rows.filter(({ agent_name }) => agent_name === 'rare').map(({ run_id }) => run_id);
      const found = await store.runs({ session_id, agent_name: 'rare', status: 'created' }, undefined, 10);
      expect(found.map(({ run_id }) => run_id)).toEqual(rare.toReversed());
      const older = await store.runs({ session_id, agent_name: 'rare' }, rare[2], 1);
      expect(older.map(({ run_id }) => run_id)).toEqual([rare[1]]);
    });
  });
}
