import type { Dispatcher } from '../core/dispatcher.ts';
import { readStoreUrl, reasonOf } from '../core/store-url.ts';
import type { BullOptions } from './bullmq/bullmq-dispatcher.ts';

/**
 * Opens the dispatcher for the store that a URL names, and imports only that dispatcher's code: the local one for
 * `memory:` and `sqlite:`, and for other stores a queue on the same server as the store.
 * @throws Error that says what is wrong with the URL, or why the queue cannot be opened
 */
export async function openDispatcher(text: string, options: BullOptions): Promise<Dispatcher> {
  try {
    return await open(text, options);
  } catch (error) {
    throw new Error(`the queue beside the store cannot be opened: ${reasonOf(error)}`, { cause: error });
  }
}

/**
 * Checks whether a queue beside the store of a URL would work. Changes nothing.
 * @throws Error that says what is missing and what to do
 */
export async function checkQueue(text: string): Promise<void> {
  const found = readStoreUrl(text);
  if (found?.kind !== 'postgres') return;
  const { checkPostgresQueue } = await import('./bullmq/postgres-check.ts');
  await checkPostgresQueue(found.url, found.schema);
}

/** Milliseconds: a shorter lease would be renewed all the time, and a longer one would never end. */
const leaseLimits = { least: 100, most: 86_400_000 };

async function open(text: string, options: BullOptions): Promise<Dispatcher> {
  const found = readStoreUrl(text);
  if (found?.kind === 'redis' || found?.kind === 'postgres') checkOptions(options);
  if (found?.kind === 'redis') {
    const { openRedisQueue } = await import('./bullmq/redis-queue.ts');
    return openRedisQueue(found.url, found.prefix, options);
  }
  if (found?.kind === 'postgres') {
    const { openPostgresQueue } = await import('./bullmq/postgres-queue.ts');
    return openPostgresQueue(found.url, found.schema, options);
  }
  const { LocalDispatcher } = await import('./local.ts');
  return new LocalDispatcher();
}

function checkOptions({ slots, lease }: BullOptions): void {
  const { least, most } = leaseLimits;
  if (!Number.isInteger(lease) || lease < least || lease > most) {
    throw new RangeError(`a lease has to be a whole number of milliseconds from ${least} to ${most}; got ${lease}`);
  }
  if (!Number.isInteger(slots) || slots < 1) {
    throw new RangeError(`the number of slots has to be a whole number from 1 on; got ${slots}`);
  }
}
