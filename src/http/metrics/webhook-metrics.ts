import { Counter, type Registry } from 'prom-client';
import type { DeliveryOutcome, EngineObserver } from '../../engine/observers.ts';
import { PlainHistogram, type Series } from './plain-histogram.ts';

const deliverySeconds = [0.1, 0.5, 1, 5, 30, 300, 1_800, 3_600, 14_400, 43_200, 86_400, 259_200];

/** The metrics of webhooks. An attempt is a request to another server, so it costs little in comparison. */
export class WebhookMetrics implements EngineObserver {
  readonly #attempts: Counter<'outcome'>;
  readonly #seconds: Readonly<Record<DeliveryOutcome, Series>>;

  constructor(registry: Registry) {
    const rest = { labelNames: ['outcome'], registers: [registry] };
    this.#attempts = new Counter({
      name: 'rivulet_webhook_deliveries_total',
      help: 'Attempts to deliver a webhook. failed: there is no other attempt.',
      ...rest,
    });
    const histogram = new PlainHistogram({
      name: 'rivulet_webhook_delivery_seconds',
      help: 'Time from the change that a webhook reports to the end of an attempt.',
      buckets: deliverySeconds,
      ...rest,
    });
    this.#seconds = {
      delivered: histogram.add({ outcome: 'delivered' }),
      retried: histogram.add({ outcome: 'retried' }),
      failed: histogram.add({ outcome: 'failed' }),
    };
  }

  onDelivery(outcome: DeliveryOutcome, seconds: number): void {
    this.#attempts.inc({ outcome });
    this.#seconds[outcome].observe(seconds);
  }
}
