import { createRedisBackend } from 'bullmq';
import { BullDispatcher, type BullOptions } from './bullmq-dispatcher.ts';

/**
 * Three connections: one offers, one takes and renews, one waits for something to take.
 * The names of all keys begin with the store's prefix, and are kept where its keys are.
 */
export function openRedisQueue(url: string, prefix: string, options: BullOptions) {
  const common = {
    url,
    connectTimeout: 3_000,
    socketTimeout: 10_000,
    retryStrategy: (times: number) => Math.min(times * 50, 1_000),
    // The server has become a replica; its name may lead to the new primary by now.
    reconnectOnError: ({ message }: Error) => message.startsWith('READONLY'),
  };
  const place = {
    backend: createRedisBackend,
    name: 'runs',
    prefix: `{${prefix}}:bull`,
    offering: { ...common, enableOfflineQueue: false, maxRetriesPerRequest: 0 },
    taking: { ...common, maxRetriesPerRequest: null },
    // Who is told of a job may die with it before he takes it.
    look: 2,
  };
  return BullDispatcher.open(place, options);
}
