import { LRUCache } from 'lru-cache';
import type { QuotaRule, Quotas } from '../../core/ports/quotas.ts';
import { networkOf } from '../requests/client-network.ts';

const window = 60_000; // milliseconds
const maxFailures = 20;
const maxAddresses = 10_000;
const rule: QuotaRule = { name: 'failures', points: maxFailures, window: window / 1_000 };

/**
 * Counts wrong credentials by address for a minute. A network of IPv6 counts as one address, because its user can choose
 * among 2^64. An address is forgotten early only if 10,000 others failed after it.
 */
export class FailedAttempts {
  readonly #quotas: Quotas | undefined;
  /** The minute of an address begins with its first failure; later ones do not lengthen it. */
  readonly #byAddress = new LRUCache<string, number>({ max: maxAddresses, ttl: window, noUpdateTTL: true });

  /** Nodes that share their counters count together. A node learns of the others' count by a failure of its own. */
  constructor(quotas: Quotas) {
    this.#quotas = quotas.isShared ? quotas : undefined;
  }

  add(address: string): void {
    const key = networkOf(address);
    const count = (this.#byAddress.get(key) ?? 0) + 1;
    this.#byAddress.set(key, count);
    // An address that has no attempt left costs no more round trips.
    if (count <= maxFailures) void this.#addShared(key);
  }

  async #addShared(key: string): Promise<void> {
    const state = await this.#quotas?.take(rule, `address:${key}`, 1);
    if (state?.remaining !== 0) return;
    this.#byAddress.set(key, maxFailures, { ttl: state.reset * 1_000, noUpdateTTL: false });
  }

  /** Seconds until the address may try again; undefined where it may try now. */
  waitOf(address: string): number | undefined {
    const key = networkOf(address);
    const count = this.#byAddress.get(key) ?? 0;
    return count < maxFailures ? undefined : Math.ceil(this.#byAddress.getRemainingTTL(key) / 1_000);
  }
}
