import { randomBytes } from 'node:crypto';
import { afterAll } from 'vitest';
import { RedisClusterStore } from '../../src/stores/redis/cluster-store.ts';
import { readStoreUrl } from '../../src/stores/store-url.ts';
import { startRedisCluster } from '../support/servers.ts';
import { storeContract } from './contract.ts';

const cluster = await startRedisCluster();
afterAll(() => cluster?.stop());

/** Opens a store of the cluster. */
async function open(prefix: string, parts?: number): Promise<RedisClusterStore> {
  const found = readStoreUrl(cluster?.url ?? '');
  if (found?.kind !== 'redis-cluster') throw new Error('there is no cluster');
  return RedisClusterStore.open(found.address, prefix, () => {}, parts);
}

const prefix = randomBytes(6).toString('hex');
// Of one part, because the writes of a commit belong to one, and the contract commits any together.
storeContract('redis cluster', () => open(prefix, 1));
