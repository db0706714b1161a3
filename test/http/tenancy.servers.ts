import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe } from 'vitest';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { TenantNode, unlimited } from '../support/tenants.ts';
import { describeTenancy } from './tenancy.ts';

const folder = mkdtempSync(join(tmpdir(), 'rivulet-tenancy-'));
afterAll(() => rmSync(folder, { recursive: true }));

describeTenancy('SQLite', async () => [
  await TenantNode.open({ ...unlimited, store: `sqlite:${join(folder, 'runs.db')}` }),
]);

for (const [kind, place] of Object.entries({ Redis: await redisPlace(), PostgreSQL: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`with ${kind}`, () => {
    afterAll(() => place?.remove());
    describeTenancy(`two nodes of ${kind}`, async () => {
      const store = place?.url ?? '';
      return [await TenantNode.open({ ...unlimited, store }), await TenantNode.open({ ...unlimited, store })];
    });
  });
}
