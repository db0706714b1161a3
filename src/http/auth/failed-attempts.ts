import { LRUCache } from 'lru-cache';
import type { QuotaRule, Quotas } from '../../core/ports/quotas.ts';
import { networkOf } from '../requests/client-network.ts';

const window = 60_000; // milliseconds
const maxFailures = 20;
const maxAddresses = 10_000;
const rule: QuotaRule = { name: 'failures', points: maxFailures, window: window / 1_000 };

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
  readonly #quotas: Quotas | undefined;
  readonly #byAddress = new LRUCache<string, Attempts>({ max: maxAddresses });

  /** Nodes that share their counters count together. A node learns of the others' count by a failure of its own. */
  constructor(quotas?: Quotas) {
    this.#quotas = quotas?.isShared ? quotas : undefined;
  }

  add(address: string): void {
    const key = networkOf(address);
    const known = this.#byAddress.get(key);
    const attempts = known !== undefined && Date.now() < known.until ? known : { count: 0, until: Date.now() + window };
    attempts.count += 1;
    this.#byAddress.set(key, attempts);
    // An address that has no attempt left costs no more round trips.
    if (attempts.count <= maxFailures) void this.#addShared(key);
  }

  async #addShared(key: string): Promise<void> {
    const state = await this.#quotas?.take(rule, `address:${key}`, 1);
    if (state !== undefined && state.remaining === 0) {
      this.#byAddress.set(key, { count: maxFailures, until: Date.now() + state.reset * 1_000 });
    }
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
