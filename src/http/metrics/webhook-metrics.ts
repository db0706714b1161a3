import type { Engine } from '../../engine/engine.ts';
import { madeAt } from '../../engine/ids.ts';
import type { EngineMetrics, Meters } from './meters.ts';

const deliverySeconds = [0.1, 0.5, 1, 5, 30, 300, 1_800, 3_600, 14_400, 43_200, 86_400, 259_200];

/** The metrics of webhooks. */
export function webhookMetrics(engine: Engine, { counter, gauge, histogram }: Meters): EngineMetrics {
  const deliveries = counter(
    'webhook_deliveries_total',
    'Attempts to deliver a webhook. failed: no other attempt follows; refused: none was made, the URL is off.',
    ['outcome'],
  );
  // From the start, so that the first one is an increase.
  deliveries.inc({ outcome: 'refused' }, 0);
  const switchedOff = counter(
    'webhook_urls_switched_off_total',
    'URLs that get no more webhooks, because all attempts of days have failed.',
    [],
  );
  const times = histogram(
    'webhook_delivery_seconds',
    'Time from the change that a webhook reports to the end of an attempt.',
    deliverySeconds,
    ['outcome'],
  );
  for (const outcome of ['delivered', 'retried', 'failed']) times.zero({ outcome });
  const waiting = gauge('webhook_pending', 'Webhooks of the store that wait for an attempt; counted up to 10,000.', []);
  const oldest = gauge('webhook_oldest_seconds', 'Age of the oldest of them, since the change that it reports.', []);
  return {
    unobserve: [
      engine.on('delivery', (outcome, seconds) => {
        deliveries.inc({ outcome });
        times.observe({ outcome }, seconds);
      }),
      engine.on('deliveryRefused', () => deliveries.inc({ outcome: 'refused' })),
      engine.on('urlSwitchedOff', () => switchedOff.inc()),
    ],
    fill({ pending }) {
      if (pending === undefined) {
        // A value of zero would look like an empty outbox.
        for (const one of [waiting, oldest]) one.remove();
        return;
      }
      waiting.set(pending.count);
      // An id may be some milliseconds ahead of the clock.
      oldest.set(pending.oldest === null ? 0 : Math.max(0, Date.now() - madeAt(pending.oldest)) / 1000);
    },
  };
}
