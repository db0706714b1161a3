import { join } from 'node:path';
import { afterAll, describe } from 'vitest';
import { newFolder } from '../support/folder.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { TenantNode, unlimited } from '../support/tenants.ts';
import { describeTenancy } from './tenancy.ts';

const folder = newFolder(afterAll);

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
