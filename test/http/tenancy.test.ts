import { expect, it } from 'vitest';
import { newId } from '../../src/engine/ids.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { faulty, newPlan } from '../support/faulty-store.ts';
import { belongingsOf, TenantNode, tenantNode, unlimited } from '../support/tenants.ts';
import { describeTenancy } from './tenancy.ts';

// tenancy.servers.ts does the same with the other stores, and with two nodes of those that are shared.
describeTenancy('memory', async () => [await TenantNode.open(unlimited)]);

it('makes the same calls of the store for what another owner has and for what does not exist', async () => {
  const plan = newPlan();
  const node = await tenantNode({
    ...unlimited,
    store: faulty(new MemoryStore(), plan),
    limits: { sweepInterval: 3_600_000 },
  });
  const hers = await belongingsOf(node.as('alice'));
  const bob = node.as('bob');
  const callsOf = async (path: string, method: string): Promise<object> => {
    const before = { ...plan.calls };
    expect((await bob(path, { method })).status).toBe(404);
    // Without `claimDeliveries`: the deliverer calls it when the failed webhook is due again, and no request does.
    const names = (Object.keys(plan.calls) as (keyof typeof plan.calls)[]).filter((name) => name !== 'claimDeliveries');
    return Object.fromEntries(names.map((name) => [name, (plan.calls[name] ?? 0) - (before[name] ?? 0)]));
  };
  const paths: [method: string, path: (id: string) => string, ids: readonly string[]][] = [
    ['GET', (id) => `/runs/${id}`, hers.run_id],
    ['GET', (id) => `/runs/${id}/events`, hers.run_id],
    ['POST', (id) => `/runs/${id}/cancel`, hers.run_id],
    ['DELETE', (id) => `/runs/${id}`, hers.run_id],
    ['GET', (id) => `/sessions/${id}`, hers.session_id],
    ['GET', (id) => `/resources/${id}`, hers.resource_id],
  ];
  for (const [method, path, ids] of paths) {
    const nothing = await callsOf(path(newId()), method);
    for (const id of ids) expect([path(id), await callsOf(path(id), method)]).toEqual([path(id), nothing]);
  }
});
