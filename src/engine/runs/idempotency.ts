import { createHash } from 'node:crypto';
import { BoxedMap } from '../../core/collections.ts';
import { fail } from '../../core/errors.ts';
import type { Extras, Key, RunStore } from '../../core/ports/run-store.ts';
import { operator, ownerOf, type Principal } from '../../core/principal.ts';
import { isFinal } from '../../core/run-state.ts';
import { madeAt } from '../ids.ts';
import { isUnavailable } from '../store/store-calls.ts';

/** A request that came with an Idempotency-Key. */
export interface IdempotentRequest {
  readonly scope: string;
  readonly key: string;
  readonly hash: string;
  /** Whether the key stands for this request alone, and only until its run is final. */
  readonly whileOpen: boolean;
  /** When the key was stored before, for a run for which it stands no more. */
  readonly freed?: string;
}

/** Texts of more characters are replaced by their hash. */
const hashedTextChars = 65_536;

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64');

/**
 * A principal's request; undefined without a key. The hash of its body depends neither on the order of the keys nor on the
 * mode.
 */
export function idempotentRequest(
  what: string,
  principal: Principal | undefined,
  key: string | undefined,
  body: object,
  whileOpen = false,
): IdempotentRequest | undefined {
  if (key === undefined) return undefined;
  const { mode: _, ...rest } = { mode: undefined, ...body };
  return { scope: scopeOf(what, principal), key: storable(key), hash: hashOf(JSON.stringify(sorted(rest))), whileOpen };
}

function scopeOf(what: string, principal: Principal | undefined): string {
  const owner = ownerOf(principal ?? operator);
  return owner === null ? what : `${owner} ${what}`;
}

/** What the header takes. PostgreSQL has no index for keys of more than 2,704 bytes. */
const maxKeyChars = 255;

/** PostgreSQL and SQLite refuse or change NUL and half a surrogate pair, which a key in a body may have. */
const storable = (key: string): string =>
  key.length > maxKeyChars || /[\p{Cc}\p{Cs}]/u.test(key) ? hashOf(JSON.stringify(key)) : key;

/** The same value, with each object as its sorted names and their values. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value === 'string' && value.length > hashedTextChars) return { text: hashOf(value) };
  if (typeof value !== 'object' || value === null) return value;
  const names = Object.keys(value).sort();
  return { names, values: names.map((name) => sorted(Reflect.get(value, name))) };
}

/** @throws RivuletError `idempotency_key_reused` where the key came with another body */
function sameBody(known: Key, { key, hash }: IdempotentRequest): Key {
  if (known.hash !== hash) throw fail('idempotency_key_reused', key);
  return known;
}

/** What a request does, and stores its key with. */
type Work<T> = (key: IdempotentRequest | undefined) => Promise<T>;

const latest = (a: string, b: string): string => (a > b ? a : b);

/** Executes each request with an Idempotency-Key once, however often it is sent. */
export class Idempotency {
  readonly #store: RunStore;
  readonly #ttl: number;
  readonly #keptAtLeast: () => number;
  /** By key, the newest request that is in progress in this process. */
  readonly #inProgress = new BoxedMap<Promise<unknown>>();

  /**
   * `ttl`: milliseconds for which a key is kept; 0 for ever. `keptAtLeast`: those for which any final run is kept, unless
   * a client deletes it.
   */
  constructor(store: RunStore, ttl: number, keptAtLeast: () => number) {
    this.#store = store;
    this.#ttl = ttl;
    this.#keptAtLeast = keptAtLeast;
  }

  /**
   * Does the work, which stores the key, or returns the result of the earlier request. Requests of one key wait for each
   * other: the second one has to find the run of the first one, not a session that this run keeps busy.
   * @throws RivuletError `idempotency_key_reused`, `log_removed`, and any error of the work
   */
  async deduplicate<T>(
    request: IdempotentRequest | undefined,
    repeat: (key: Key) => Promise<T>,
    work: Work<T>,
  ): Promise<T> {
    if (request === undefined) return work(undefined);
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
  find(what: string, principal: Principal | undefined, key: string): Promise<Key | undefined> {
    return this.#known({ scope: scopeOf(what, principal), key: storable(key) });
  }

  async #findOrDo<T>(request: IdempotentRequest, repeat: (key: Key) => Promise<T>, work: Work<T>): Promise<T> {
    const known = await this.#known(request);
    const freed = known !== undefined && (await this.#isFree(known, request)) ? known : undefined;
    if (known !== undefined && freed === undefined) return repeat(sameBody(known, request));
    try {
      return await work(freed === undefined ? request : { ...request, freed: freed.created_at });
    } catch (error) {
      // The lookup would wait for the store as well. The client repeats the request.
      if (isUnavailable(error)) throw error;
      // Another process may have executed a request of the same key meanwhile.
      const first = await this.#known(request);
      if (first === undefined || first.run_id === freed?.run_id) throw error;
      return repeat(sameBody(first, request));
    }
  }

  async #known({ scope, key }: Pick<Key, 'scope' | 'key'>): Promise<Key | undefined> {
    const known = await this.#store.key(scope, key);
    return known !== undefined && known.created_at >= this.#oldest() ? known : undefined;
  }

  /**
   * Whether another request may take a key: a client has deleted its run, or the key was for an open run alone. A run that its
   * retention may have removed keeps its key, because the request was executed and must not be executed again.
   * @throws RivuletError `log_removed`
   */
  async #isFree({ run_id, hash }: Key, { hash: wanted, whileOpen }: IdempotentRequest): Promise<boolean> {
    if (whileOpen && hash !== wanted) return true;
    const row = await this.#store.run(run_id);
    if (row !== undefined) return whileOpen && isFinal(row.status);
    if (!whileOpen && madeAt(run_id) < Date.now() - this.#keptAtLeast()) throw fail('log_removed', run_id);
    return true;
  }

  /** The key, to be committed together with the work's result. */
  keyExtras(request: IdempotentRequest | undefined, run_id: string, after: number, created_at: string): Extras {
    if (request === undefined) return {};
    const { freed, whileOpen: _, ...stored } = request;
    const next = freed === undefined ? '' : new Date(Date.parse(freed) + 1).toISOString();
    const fresh = latest(this.#oldest(), next);
    return { key: { ...stored, run_id, after, created_at: latest(created_at, next), fresh } };
  }

  #oldest(): string {
    return new Date(this.#ttl > 0 ? Date.now() - this.#ttl : 0).toISOString();
  }
}
