import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { PendingDeliveries } from '../../core/ports/outbox.ts';
import type { OpenRuns } from '../../core/ports/run-lists.ts';
import type { EngineLoad } from '../../engine/runs/counts.ts';

/** Makes the series of one registry; each name begins with `rivulet_`. */
export function metersOf(registry: Registry) {
  const named = (name: string, help: string) => ({ name: `rivulet_${name}`, help, registers: [registry] });
  return {
    counter: <Label extends string>(name: string, help: string, labelNames: Label[]) =>
      new Counter({ ...named(name, help), labelNames }),
    gauge: <Label extends string>(name: string, help: string, labelNames: Label[]) =>
      new Gauge({ ...named(name, help), labelNames }),
    histogram: <Label extends string>(name: string, help: string, buckets: number[], labelNames: Label[]) =>
      new Histogram({ ...named(name, help), buckets, labelNames }),
    /** A gauge whose value is asked for at each scrape. */
    asked: (name: string, help: string, value: () => number) =>
      new Gauge({
        ...named(name, help),
        collect() {
          this.set(value());
        },
      }),
  };
}
export type Meters = ReturnType<typeof metersOf>;

/** What is read for a scrape. Where the store does not answer, `open` and `pending` are undefined. */
export interface Scraped {
  readonly load: EngineLoad;
  readonly open: readonly OpenRuns[] | undefined;
  readonly pending: PendingDeliveries | undefined;
}

/** Metrics that observe the engine, and copy at each scrape what the engine and the store have counted. */
export interface EngineMetrics {
  readonly unobserve: readonly (() => void)[];
  fill(scraped: Scraped): void;
}
