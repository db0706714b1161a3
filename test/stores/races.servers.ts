import { afterAll, describe, expect, it } from 'vitest';
import { isFinal } from '../../src/core/run-state.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { closedAfterEach } from './auto-close.ts';
import { append, end, fresh, messageOf, numbered } from './writes.ts';

for (const [name, place] of Object.entries({ redis: await redisPlace(), postgres: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`a session that one node removes while another adds a run: ${name}`, () => {
    afterAll(() => place?.remove());
    const { open } = closedAfterEach();

    it('keeps the run with its log and its messages, or refuses the removal', async () => {
      const [one, other] = [await open(place?.url ?? ''), await open(place?.url ?? '')];
      const removals = new Set<boolean>();
      for (let round = 0; round < 25; round += 1) {
        const session_id = `race-${round}`;
        const old = append(fresh({ session_id }), ['1'], { history: [`/old/${round}`] });
        await one.commit([old, end(old.row, 'completed')]);
        const row = fresh({ session_id });
        const begun = append(row, ['1'], { journal: ['{}'], ...messageOf(row, 'question') });
        const [removed, outcomes] = await Promise.all([one.removeSession(session_id), other.commit([begun])]);
        removals.add(removed);
        expect(outcomes).toEqual(['taken']);
        const found = await other.run(row.run_id);
        expect(found).toEqual(begun.row);
        expect(found && isFinal(found.status)).toBe(false);
        while (await one.sweep({ keys: '' }));
        expect(numbered(await other.events(row.run_id, 0, 10))).toEqual([[1, '1']]);
        expect(await other.journal(row.run_id)).toEqual(['{}']);
        const history = removed ? begun.history : [...(old.history ?? []), ...(begun.history ?? [])];
        expect((await other.session(session_id))?.history).toEqual(history);
        expect(await other.resources([`question-of-${row.run_id}`])).toEqual(begun.resources);
        expect(await one.removeSession(session_id)).toBe(false);
        expect(await one.remove(row.run_id)).toBe(false);
      }
      expect(removals.size).toBeGreaterThan(0);
    });
  });
}
