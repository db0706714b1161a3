import { createHash } from 'node:crypto';
import { fail } from '../core/errors.ts';
import type { Key, Store } from '../core/store.ts';
import type { Extras } from './run-log.ts';

/** A request that came with an Idempotency-Key. */
export interface Once {
  readonly scope: string;
  readonly key: string;
  readonly hash: string;
}

/** The same body has the same hash, however its keys are ordered and in whichever mode it asks. */
export function once(scope: string, key: string, body: object): Once {
  const { mode: _, ...rest } = { mode: undefined, ...body };
  const canonical = JSON.stringify(rest, (_key, value) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return { scope, key, hash: createHash('sha256').update(canonical).digest('base64') };
}

/** Requests that are made once, however often they are sent. */
export class Idempotency {
  readonly #store: Store;
  readonly #keep: number;

  /** `keep` is in milliseconds. */
  constructor(store: Store, keep: number) {
    this.#store = store;
    this.#keep = keep;
  }

  /** What came of an earlier request of the same key. @throws RivuletError `key_reused` */
  async earlier({ scope, key, hash }: Once): Promise<Key | undefined> {
    const known = await this.#store.key(scope, key);
    if (known === undefined || known.created_at < this.#fresh()) return undefined;
    if (known.hash !== hash) throw fail('key_reused', key);
    return known;
  }

  /** What keeps the key together with what comes of it. */
  keep(request: Once | undefined, run_id: string, after: number, created_at: string): Extras {
    return request === undefined ? {} : { key: { ...request, run_id, after, created_at, fresh: this.#fresh() } };
  }

  #fresh(): string {
    return new Date(Date.now() - this.#keep).toISOString();
  }
}
