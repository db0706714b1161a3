import { createHash } from 'node:crypto';
import { fail } from '../../core/errors.ts';
import type { Extras, Key, Store } from '../../core/store.ts';

/** A request that came with an Idempotency-Key. */
export interface IdempotentRequest {
  readonly scope: string;
  readonly key: string;
  readonly hash: string;
}

/** Characters from which on a text stands for itself by its hash: to write megabytes as JSON costs more than to hash them. */
const hashedTextChars = 65_536;

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64');

/** The same body has the same hash, however its keys are ordered and in whichever mode it asks. */
export function idempotentRequest(scope: string, key: string, body: object): IdempotentRequest {
  const { mode: _, ...rest } = { mode: undefined, ...body };
  return { scope, key, hash: hashOf(JSON.stringify(sorted(rest))) };
}

/**
 * The same value, with each object as its sorted names and their values: one `JSON.stringify` of that costs a quarter
 * of what sorted copies cost, in which V8 would build large objects again.
 */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value === 'string' && value.length > hashedTextChars) return { text: hashOf(value) };
  if (typeof value !== 'object' || value === null) return value;
  const names = Object.keys(value).sort();
  return { names, values: names.map((name) => sorted(Reflect.get(value, name))) };
}

/** Requests that are made once, however often they are sent. */
export class Idempotency {
  readonly #store: Store;
  readonly #ttl: number;
  /** The newest request of each key that is under way here. */
  readonly #inProgress = new Map<string, Promise<unknown>>();

  /** `keep` is in milliseconds. */
  constructor(store: Store, keyExtras: number) {
    this.#store = store;
    this.#ttl = keyExtras;
  }

  /**
   * Does the work, or answers what came of it before. Requests of one key wait for each other: the second has to
   * find what the first has made, not the session that the first keeps busy.
   * @throws RivuletError `idempotency_key_reused`, and what the work throws
   */
  async deduplicate<T>(
    request: IdempotentRequest | undefined,
    again: (key: Key) => Promise<T>,
    work: () => Promise<T>,
  ): Promise<T> {
    if (request === undefined) return work();
    const name = `${request.scope} ${request.key}`;
    const before = this.#inProgress.get(name);
    const mine = (async () => {
      await before?.catch(() => undefined); // its own caller hears of it
      return this.#findOrDo(request, again, work);
    })();
    this.#inProgress.set(name, mine);
    try {
      return await mine;
    } finally {
      if (this.#inProgress.get(name) === mine) this.#inProgress.delete(name);
    }
  }

  async #findOrDo<T>(request: IdempotentRequest, again: (key: Key) => Promise<T>, work: () => Promise<T>): Promise<T> {
    const earlier = await this.#earlier(request);
    if (earlier !== undefined) return again(earlier);
    try {
      return await work();
    } catch (error) {
      // The first of them may have come to another process.
      const first = await this.#earlier(request);
      if (first === undefined) throw error;
      return again(first);
    }
  }

  async #earlier({ scope, key, hash }: IdempotentRequest): Promise<Key | undefined> {
    const known = await this.#store.key(scope, key);
    if (known === undefined || known.created_at < this.#fresh()) return undefined;
    if (known.hash !== hash) throw fail('idempotency_key_reused', key);
    return known;
  }

  /** What keeps the key together with what comes of it. */
  keep(request: IdempotentRequest | undefined, run_id: string, after: number, created_at: string): Extras {
    return request === undefined ? {} : { key: { ...request, run_id, after, created_at, fresh: this.#fresh() } };
  }

  #fresh(): string {
    return new Date(Date.now() - this.#ttl).toISOString();
  }
}
