import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { within } from '../../core/timing.ts';
import type { Engine } from '../../engine/engine.ts';
import type { TrafficObserver } from '../traffic.ts';
import { RequestMetrics } from './request-metrics.ts';
import { RunMetrics } from './run-metrics.ts';
import { StoreMetrics } from './store-metrics.ts';
import { WebhookMetrics } from './webhook-metrics.ts';

export interface MetricsOptions {
  readonly version: string;
  /** The kind of store, such as `sqlite`. */
  readonly store: string;
  readonly isHosted: (agent_name: string) => boolean;
  readonly brokenFiles: () => number;
  readonly openStreams: () => number;
}

/** Milliseconds that a scrape waits for the store: less than Prometheus waits for the scrape. */
const storeTimeout = 2_000;

/** The metrics of a server, in a registry of their own, so that servers of one process do not add up. */
export class Metrics {
  readonly traffic: TrafficObserver;
  readonly #engine: Engine;
  readonly #registry = new Registry();
  readonly #runs: RunMetrics;
  readonly #store: StoreMetrics;
  readonly #webhooks: WebhookMetrics;
  readonly #unobserve: readonly (() => void)[];
  #scrape: Promise<string> | undefined;

  constructor(engine: Engine, { version, store, isHosted, brokenFiles, openStreams }: MetricsOptions) {
    this.#engine = engine;
    this.traffic = new RequestMetrics(this.#registry, openStreams);
    this.#runs = new RunMetrics({ registry: this.#registry, isHosted });
    this.#store = new StoreMetrics(this.#registry, store);
    this.#webhooks = new WebhookMetrics(this.#registry);
    new Gauge({
      name: 'rivulet_build_info',
      help: 'The versions of Rivulet and Node, and the store.',
      labelNames: ['version', 'store', 'node'],
      registers: [this.#registry],
    }).set({ version, store, node: process.versions.node }, 1);
    new Gauge({
      name: 'rivulet_agent_files_broken',
      help: 'Files of agents that do not load.',
      registers: [this.#registry],
      collect() {
        this.set(brokenFiles());
      },
    });
    this.#unobserve = [
      engine.on('runEnded', (run) => this.#runs.onRunEnded(run)),
      engine.on('runParked', (row) => this.#runs.onRunParked(row)),
      engine.on('reply', (agent, seconds) => this.#runs.onReply(agent, seconds)),
      engine.on('commit', (seconds, writes) => this.#store.onCommit(seconds, writes)),
      engine.on('delivery', (outcome, seconds) => this.#webhooks.onDelivery(outcome, seconds)),
      engine.on('deliveryRefused', () => this.#webhooks.onDeliveryRefused()),
      engine.on('urlSwitchedOff', () => this.#webhooks.onUrlSwitchedOff()),
    ];
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
    for (const unobserve of this.#unobserve) unobserve();
  }

  async #collect(): Promise<string> {
    const asked = Promise.all([this.#engine.openRuns(), this.#engine.webhooks.pending()]);
    const [open, pending] = await within(storeTimeout, asked).catch(() => []);
    const { load } = this.#engine;
    this.#runs.fill(load, open);
    this.#store.fill(load, open !== undefined);
    this.#webhooks.fill(pending);
    return `${await this.#registry.metrics()}\n${await processMetrics().metrics()}`;
  }
}

let registry: Registry | undefined;

/** Names that a Prometheus linter refuses: gauges that are called totals. */
const misnamed = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/**
 * The metrics of the process: CPU, memory, garbage collection, delay of the event loop. All servers of a process share
 * them, because prom-client cannot stop what it has started to observe.
 */
function processMetrics(): Registry {
  if (registry !== undefined) return registry;
  registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of misnamed) registry.removeSingleMetric(name);
  return registry;
}
