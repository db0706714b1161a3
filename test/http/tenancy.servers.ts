import { afterAll, describe } from 'vitest';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { TenantNode, unlimited } from '../support/tenants.ts';
import { describeTenancy } from './tenancy.ts';

for (const [kind, place] of Object.entries({ Redis: await redisPlace(), PostgreSQL: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`with ${kind}`, () => {
    afterAll(() => place?.remove());
    describeTenancy(`two nodes of ${kind}`, async () => {
      const store = place?.url ?? '';
      return [await TenantNode.open({ ...unlimited, store }), await TenantNode.open({ ...unlimited, store })];
    });
  });
}
