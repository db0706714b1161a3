import { createHash } from 'node:crypto';
import { BoxedMap } from '../../core/collections.ts';
import { fail } from '../../core/errors.ts';
import { operator, ownerOf, type Principal } from '../../core/principal.ts';
import type { Extras, Key, Store } from '../../core/store.ts';

/** A request that came with an Idempotency-Key. */
export interface IdempotentRequest {
  readonly scope: string;
  readonly key: string;
  readonly hash: string;
}

/** Texts of more characters are replaced by their hash: writing megabytes as JSON costs more than hashing them. */
const hashedTextChars = 65_536;

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64');

/** A principal's request. The hash of its body depends neither on the order of the keys nor on the mode. */
export function idempotentRequest(
  what: string,
  principal: Principal | undefined,
  key: string,
  body: object,
): IdempotentRequest {
  const { mode: _, ...rest } = { mode: undefined, ...body };
  const owner = ownerOf(principal ?? operator);
  const scope = owner === null ? what : `${owner} ${what}`;
  return { scope, key: storable(key), hash: hashOf(JSON.stringify(sorted(rest))) };
}

/** PostgreSQL and SQLite refuse or change NUL and half a surrogate pair, which a key in a body may have. */
const storable = (key: string): string => (/[\p{Cc}\p{Cs}]/u.test(key) ? hashOf(JSON.stringify(key)) : key);

/**
 * The same value, with each object as its sorted names and their values. One `JSON.stringify` of that costs a quarter
 * of sorted copies, for which V8 would build large objects.
 */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value === 'string' && value.length > hashedTextChars) return { text: hashOf(value) };
  if (typeof value !== 'object' || value === null) return value;
  const names = Object.keys(value).sort();
  return { names, values: names.map((name) => sorted(Reflect.get(value, name))) };
}

/** Executes each request with an Idempotency-Key once, however often it is sent. */
export class Idempotency {
  readonly #store: Store;
  readonly #ttl: number;
  /** By key, the newest request that is in progress in this process. */
  readonly #inProgress = new BoxedMap<Promise<unknown>>();

  /** `ttl`: milliseconds for which a key is kept; 0 for ever. */
  constructor(store: Store, ttl: number) {
    this.#store = store;
    this.#ttl = ttl;
  }

  /**
   * Does the work, or returns the result of the earlier request. Requests of one key wait for each other: the second
   * one has to find the run of the first one, not a session that this run keeps busy.
   * @throws RivuletError `idempotency_key_reused`, and any error of the work
   */
  deduplicate<T>(
    request: IdempotentRequest | undefined,
    repeat: (key: Key) => Promise<T>,
    work: () => Promise<T>,
  ): Promise<T> {
    return request === undefined ? work() : this.#oneByOne(request, repeat, work);
  }

  async #oneByOne<T>(request: IdempotentRequest, repeat: (key: Key) => Promise<T>, work: () => Promise<T>): Promise<T> {
    const name = `${request.scope} ${request.key}`;
    const before = this.#inProgress.get(name);
    const result = (async () => {
      await before?.catch(() => undefined); // its own caller gets the error
      return this.#findOrDo(request, repeat, work);
    })();
    this.#inProgress.set(name, result);
    try {
      return await result;
    } finally {
      if (this.#inProgress.get(name) === result) this.#inProgress.delete(name);
    }
  }

  /** The result of an earlier request with this key, whatever its body was. */
  async find(what: string, principal: Principal | undefined, key: string): Promise<Key | undefined> {
    const request = idempotentRequest(what, principal, key, {});
    const known = await this.#store.key(request.scope, request.key);
    return known !== undefined && known.created_at >= this.#oldest() ? known : undefined;
  }

  async #findOrDo<T>(request: IdempotentRequest, repeat: (key: Key) => Promise<T>, work: () => Promise<T>): Promise<T> {
    const earlier = await this.#earlier(request);
    if (earlier !== undefined) return repeat(earlier);
    try {
      return await work();
    } catch (error) {
      // Another process may have executed a request of the same key meanwhile.
      const first = await this.#earlier(request);
      if (first === undefined) throw error;
      return repeat(first);
    }
  }

  async #earlier({ scope, key, hash }: IdempotentRequest): Promise<Key | undefined> {
    const known = await this.#store.key(scope, key);
    if (known === undefined || known.created_at < this.#oldest()) return undefined;
    if (known.hash !== hash) throw fail('idempotency_key_reused', key);
    return known;
  }

  /** The key, to be committed together with the work's result. */
  keyExtras(request: IdempotentRequest | undefined, run_id: string, after: number, created_at: string): Extras {
    return request === undefined ? {} : { key: { ...request, run_id, after, created_at, fresh: this.#oldest() } };
  }

  #oldest(): string {
    return new Date(this.#ttl > 0 ? Date.now() - this.#ttl : 0).toISOString();
  }
}
