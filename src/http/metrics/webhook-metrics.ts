import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { PendingDeliveries } from '../../core/ports/outbox.ts';
import type { DeliveryOutcome } from '../../engine/engine-events.ts';
import { madeAt } from '../../engine/ids.ts';

const deliverySeconds = [0.1, 0.5, 1, 5, 30, 300, 1_800, 3_600, 14_400, 43_200, 86_400, 259_200];

/** The metrics of webhooks. An attempt is a request to another server, so it costs little in comparison. */
export class WebhookMetrics {
  readonly #deliveries: Counter<'outcome'>;
  readonly #switchedOff: Counter;
  readonly #seconds: Histogram<'outcome'>;
  readonly #pending: Gauge;
  readonly #oldest: Gauge;

  constructor(registry: Registry) {
    const rest = { labelNames: ['outcome'] as const, registers: [registry] };
    this.#deliveries = new Counter({
      name: 'rivulet_webhook_deliveries_total',
      help: 'Attempts to deliver a webhook. failed: no other attempt follows; refused: none was made, the URL is off.',
      ...rest,
    });
    // From the start, so that the first one is an increase.
    this.#deliveries.inc({ outcome: 'refused' }, 0);
    this.#switchedOff = new Counter({
      name: 'rivulet_webhook_urls_switched_off_total',
      help: 'URLs that get no more webhooks, because all attempts of days have failed.',
      registers: [registry],
    });
    this.#seconds = new Histogram({
      name: 'rivulet_webhook_delivery_seconds',
      help: 'Time from the change that a webhook reports to the end of an attempt.',
      buckets: deliverySeconds,
      ...rest,
    });
    for (const outcome of ['delivered', 'retried', 'failed']) this.#seconds.zero({ outcome });
    const gauge = (name: string, help: string): Gauge =>
      new Gauge({ name: `rivulet_webhook_${name}`, help, registers: [registry] });
    this.#pending = gauge('pending', 'Webhooks of the store that wait for an attempt; counted up to 10,000.');
    this.#oldest = gauge('oldest_seconds', 'Age of the oldest of them, since the change that it reports.');
  }

  /** `pending` is undefined where the store did not answer. */
  fill(pending: PendingDeliveries | undefined): void {
    if (pending === undefined) {
      // A value of zero would look like an empty outbox.
      for (const gauge of [this.#pending, this.#oldest]) gauge.remove();
      return;
    }
    const { count, oldest } = pending;
    this.#pending.set(count);
    // An id may be some milliseconds ahead of the clock.
    this.#oldest.set(oldest === null ? 0 : Math.max(0, Date.now() - madeAt(oldest)) / 1000);
  }

  onDelivery(outcome: DeliveryOutcome, seconds: number): void {
    this.#deliveries.inc({ outcome });
    this.#seconds.observe({ outcome }, seconds);
  }

  onDeliveryRefused(): void {
    this.#deliveries.inc({ outcome: 'refused' });
  }

  onUrlSwitchedOff(): void {
    this.#switchedOff.inc();
  }
}
