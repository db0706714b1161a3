import { createRedisBackend } from 'bullmq';
import { backoff } from '../../core/timing.ts';
import { BullDispatcher, type BullOptions } from './bullmq-dispatcher.ts';

/**
 * Opens a queue in Redis, with three connections: one to offer runs, one to take jobs and renew locks, and one to wait
 * for jobs. All keys begin with the store's prefix, and are in the same slot of a cluster.
 */
export function openRedisQueue(url: string, prefix: string, options: BullOptions) {
  const common = {
    url,
    connectTimeout: 3_000,
    socketTimeout: 10_000,
    retryStrategy: (failures: number) => backoff(failures),
    // The server has become a replica; its name may resolve to the new primary.
    reconnectOnError: ({ message }: Error) => message.startsWith('READONLY'),
  };
  const location = {
    backend: createRedisBackend,
    name: 'runs',
    prefix: `{${prefix}}:bull`,
    offerConnection: { ...common, enableOfflineQueue: false, maxRetriesPerRequest: 0 },
    workConnection: { ...common, maxRetriesPerRequest: null },
    // The node that is notified of a job may die before it takes the job.
    pollInterval: 2,
  };
  return BullDispatcher.open(location, options);
}
