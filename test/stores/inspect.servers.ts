import { afterAll, describe, expect, it } from 'vitest';
import { inspectStore, openStore } from '../../src/stores/open.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';

for (const [name, place] of Object.entries({ redis: await redisPlace(), postgres: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`inspecting a store in ${name}`, () => {
    afterAll(() => place?.remove());
    const url = place?.url ?? '';

    it('creates nothing, and finds the version and the clock', async () => {
      for (let time = 0; time < 2; time += 1) {
        expect(await inspectStore(url)).toMatchObject({ version: undefined, known: expect.any(Number) });
      }
      await (await openStore(url)).close();
      const began = performance.now();
      const { version, known, clockAhead } = await inspectStore(url);
      const took = performance.now() - began;
      expect(version).toBe(known);
      // The server reads its clock at some time of the call.
      expect(Math.abs(clockAhead ?? Number.NaN)).toBeLessThan(1_000 + took);
    });

    it('says why the store cannot be reached, without the password', async () => {
      const wrong = new URL(url);
      wrong.hostname = '127.0.0.1';
      wrong.port = '1';
      wrong.password = 'hush';
      const said = await inspectStore(wrong.href).catch(String);
      expect(said).toMatch(/the store .* cannot be opened: .*ECONNREFUSED/);
      expect(said).not.toContain('hush');
    });
  });
}
