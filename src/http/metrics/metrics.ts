import { collectDefaultMetrics, Registry as MetricRegistry } from 'prom-client';
import { within } from '../../core/timing.ts';
import type { Registry } from '../../engine/agents/registry.ts';
import type { Engine } from '../../engine/engine.ts';
import type { TrafficObserver } from '../traffic.ts';
import { type EngineMetrics, metersOf } from './meters.ts';
import { requestMetrics } from './request-metrics.ts';
import { runMetrics, stateMetrics } from './run-metrics.ts';
import { storeMetrics } from './store-metrics.ts';
import { webhookMetrics } from './webhook-metrics.ts';

export interface MetricsOptions {
  readonly version: string;
  /** The kind of store, such as `sqlite`. */
  readonly store: string;
  readonly openStreams: () => number;
}

/** Milliseconds that a scrape waits for the store: less than Prometheus waits for the scrape. */
const storeTimeout = 2_000;

/** The metrics of a server, in a registry of their own, so that servers of one process do not add up. */
export class Metrics {
  readonly traffic: TrafficObserver;
  readonly #engine: Engine;
  readonly #registry = new MetricRegistry();
  readonly #ofEngine: readonly EngineMetrics[];
  #scrape: Promise<string> | undefined;

  constructor(engine: Engine, agents: Registry, { version, store, openStreams }: MetricsOptions) {
    this.#engine = engine;
    const meters = metersOf(this.#registry);
    this.traffic = requestMetrics(meters, openStreams);
    this.#ofEngine = [
      runMetrics(engine, meters, (name) => agents.find(name) !== undefined),
      stateMetrics(meters),
      storeMetrics(engine, meters, store),
      webhookMetrics(engine, meters),
    ];
    meters
      .gauge('build_info', 'The versions of Rivulet and Node, and the store.', ['version', 'store', 'node'])
      .set({ version, store, node: process.versions.node }, 1);
    meters.asked('agent_files_broken', 'Files of agents that do not load.', () => agents.broken);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The text that Prometheus reads. Scrapes at the same time share one. */
  text(): Promise<string> {
    this.#scrape ??= this.#collect().finally(() => {
      this.#scrape = undefined;
    });
    return this.#scrape;
  }

  /** Stops observing the engine. */
  close(): void {
    for (const unobserve of this.#ofEngine.flatMap((one) => one.unobserve)) unobserve();
  }

  async #collect(): Promise<string> {
    const asked = Promise.all([this.#engine.openRuns(), this.#engine.webhooks.pending()]);
    const [open, pending] = await within(storeTimeout, asked).catch(() => []);
    const { load } = this.#engine;
    for (const one of this.#ofEngine) one.fill({ load, open, pending });
    return `${await this.#registry.metrics()}\n${await processMetrics().metrics()}`;
  }
}

let registry: MetricRegistry | undefined;

/** Names that a Prometheus linter refuses: gauges that are called totals. */
const misnamed = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/**
 * The metrics of the process: CPU, memory, garbage collection, delay of the event loop. All servers of a process share
 * them, because prom-client cannot stop what it has started to observe.
 */
function processMetrics(): MetricRegistry {
  if (registry !== undefined) return registry;
  registry = new MetricRegistry();
  collectDefaultMetrics({ register: registry });
  for (const name of misnamed) registry.removeSingleMetric(name);
  return registry;
}
