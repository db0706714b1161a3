import { LRUCache } from 'lru-cache';
import { networkOf } from '../client-network.ts';

const window = 60_000; // milliseconds
const maxFailures = 20;
const maxAddresses = 10_000;

interface Attempts {
  count: number;
  /** Epoch, milliseconds. */
  readonly until: number;
}

/**
 * Counts wrong credentials by address for a minute. A network of IPv6 counts as one address, because its user can choose
 * among 2^64. An address is forgotten early only if 10,000 others failed after it.
 */
export class FailedAttempts {
  readonly #byAddress = new LRUCache<string, Attempts>({ max: maxAddresses });

  add(address: string): void {
    const key = networkOf(address);
    const known = this.#byAddress.get(key);
    const attempts = known !== undefined && Date.now() < known.until ? known : { count: 0, until: Date.now() + window };
    attempts.count += 1;
    this.#byAddress.set(key, attempts);
  }

  /** Seconds until the address may try again; undefined where it may try now. */
  waitOf(address: string): number | undefined {
    // Most servers have no failures, and pay nothing.
    if (this.#byAddress.size === 0) return undefined;
    const attempts = this.#byAddress.get(networkOf(address));
    if (attempts === undefined || attempts.count < maxFailures) return undefined;
    const wait = Math.ceil((attempts.until - Date.now()) / 1_000);
    return wait > 0 ? wait : undefined;
  }
}
