import { collectDefaultMetrics, Registry } from 'prom-client';

let registry: Registry | undefined;

/** Names that a Prometheus linter refuses: gauges that are called totals. */
const misnamed = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/**
 * The metrics of the process: CPU, memory, garbage collection, delay of the event loop. All servers of a process share
 * them, because prom-client cannot stop what it has started to observe.
 */
export function processMetrics(): Registry {
  if (registry !== undefined) return registry;
  registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of misnamed) registry.removeSingleMetric(name);
  return registry;
}
