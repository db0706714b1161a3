import type {
  Delivery,
  DeliveryFilter,
  DeliveryResult,
  Outbox,
  PendingDeliveries,
  UrlFailures,
} from '../../core/ports/outbox.ts';
import { newestFirst, sum } from './merge.ts';
import type { Parts } from './parts.ts';
import type { RedisStore } from './redis-store.ts';

/** The outbox of a cluster. A delivery is in the part of its run. Each part counts the failures of its own deliveries. */
export class ClusterDeliveries implements Outbox {
  readonly #parts: Parts<RedisStore>;

  constructor(parts: Parts<RedisStore>) {
    this.#parts = parts;
  }

  async claimDeliveries(now: string, until: string, limit: number): Promise<Delivery[]> {
    return this.#parts.inTurn(limit, ({ outbox }, rest) => outbox.claimDeliveries(now, until, rest));
  }

  async finishDelivery(claim: Delivery, result: DeliveryResult): Promise<boolean> {
    const isOpen = await this.#parts.with(claim.run_id).outbox.finishDelivery(claim, result);
    if (isOpen && result.state === 'delivered') await this.#forgetFailures(claim);
    return isOpen;
  }

  async delivery(delivery_id: string): Promise<Delivery | undefined> {
    return this.#parts.with(delivery_id).outbox.delivery(delivery_id);
  }

  async deliveries(filter: DeliveryFilter, before: string | undefined, limit: number): Promise<Delivery[]> {
    if (filter.run_id !== undefined) return this.#parts.with(filter.run_id).outbox.deliveries(filter, before, limit);
    const found = await this.#parts.each(({ outbox }) => outbox.deliveries(filter, before, limit));
    return newestFirst(found, 'delivery_id', limit);
  }

  async pendingDeliveries(limit: number): Promise<PendingDeliveries> {
    const found = await this.#parts.answered(({ outbox }) => outbox.pendingDeliveries(limit));
    const [oldest = null] = found.flatMap((one) => one.oldest ?? []).sort();
    return { count: Math.min(limit, sum(found.map(({ count }) => count))), oldest };
  }

  async urlFailures(owner: string | null, url: string): Promise<UrlFailures | undefined> {
    // Asked before each attempt: a part that is away must not hold up the webhooks of the others.
    const asked = await this.#parts.answered(({ outbox }) => outbox.urlFailures(owner, url));
    const found = asked.flatMap((one) => one ?? []);
    if (found.length === 0) return undefined;
    const since = found.map((one) => one.since).sort();
    const last = found.map((one) => one.last_at).sort();
    const attempts = sum(found.map((one) => one.attempts));
    return { attempts, since: since[0] ?? '', last_at: last.at(-1) ?? '' };
  }

  async replayDelivery(delivery_id: string, now: string): Promise<boolean> {
    const { outbox } = this.#parts.with(delivery_id);
    const isReplayed = await outbox.replayDelivery(delivery_id, now);
    const delivery = isReplayed ? await outbox.delivery(delivery_id) : undefined;
    if (delivery !== undefined) await this.#forgetFailures(delivery);
    return isReplayed;
  }

  /** In all parts. One that is away keeps the failures. */
  async #forgetFailures({ owner, url }: Delivery): Promise<void> {
    await this.#parts.answered(({ outbox }) => outbox.forgetFailures(owner, url));
  }
}
