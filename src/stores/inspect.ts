import { readStoreUrl } from '../core/store-url.ts';
import { storeName, unknownStore, withReason } from './open.ts';

/** What is known of a store without opening it: nothing is created, migrated or locked. */
export interface Inspection {
  /** The version of the stored data; undefined where there is none yet. */
  readonly version: number | undefined;
  /** The version that this Rivulet writes. A start refuses a newer one. */
  readonly known: number;
  /** Milliseconds by which the store's clock is ahead of this process's; undefined for a store without a clock. */
  readonly clockAhead?: number;
  /** Settings of the store that may lose acknowledged commits. */
  readonly warnings?: readonly string[];
}

/** Looks at the store that a URL names. @throws Error where it cannot be reached, or the URL is wrong */
export async function inspectStore(text: string): Promise<Inspection> {
  const found = await withReason(text, async () => readStoreUrl(text));
  switch (found?.kind) {
    case 'memory':
      return { version: undefined, known: 0 };
    case 'sqlite': {
      const { inspectFile } = await import('./sqlite/inspect-file.ts');
      return withReason(text, async () => inspectFile(found.path));
    }
    case 'redis': {
      const { inspectRedis } = await import('./redis/inspect-redis.ts');
      return withReason(text, () => inspectRedis(found.url, found.prefix));
    }
    case 'postgres': {
      const { inspectPostgres } = await import('./postgres/inspect-postgres.ts');
      return withReason(text, () => inspectPostgres(found.url, found.schema));
    }
    default:
      throw unknownStore(storeName(text));
  }
}

/** How far the other clock is ahead. It was read between two readings of this clock. */
export const clockAhead = (before: number, other: number, after: number): number =>
  Math.round(other - (before + after) / 2);
