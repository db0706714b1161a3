import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { EngineLoad } from '../../engine/runs/counts.ts';

const commitSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const commitWrites = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/** The metrics of the store, as the engine experiences it. */
export class StoreMetrics {
  readonly #labels: { readonly store: string };
  readonly #duration: Histogram<'store'>;
  readonly #writes: Histogram<'store'>;
  readonly #up: Gauge<'store'>;
  readonly #errors: Counter<'store'>;
  readonly #backlog: Gauge;

  constructor(registry: Registry, store: string) {
    this.#labels = { store };
    const rest = { labelNames: ['store'] as const, registers: [registry] };
    this.#duration = new Histogram({
      name: 'rivulet_store_commit_duration_seconds',
      help: 'Time that the engine waited for a commit.',
      buckets: commitSeconds,
      ...rest,
    });
    this.#writes = new Histogram({
      name: 'rivulet_store_commit_writes',
      help: 'Writes of a commit; each is of one run.',
      buckets: commitWrites,
      ...rest,
    });
    for (const histogram of [this.#duration, this.#writes]) histogram.zero(this.#labels);
    this.#up = new Gauge({ name: 'rivulet_store_up', help: '1 if the store answers and takes commits.', ...rest });
    this.#errors = new Counter({
      name: 'rivulet_store_errors_total',
      help: 'Commits that failed; each is retried.',
      ...rest,
    });
    this.#backlog = new Gauge({
      name: 'rivulet_backlog_chars',
      help: 'Characters of events that wait for the store.',
      registers: [registry],
    });
  }

  onCommit(seconds: number, writes: number): void {
    this.#duration.observe(this.#labels, seconds);
    this.#writes.observe(this.#labels, writes);
  }

  fill({ backlog, failing, storeErrors }: EngineLoad, answers: boolean): void {
    this.#up.set(this.#labels, answers && !failing ? 1 : 0);
    this.#errors.reset();
    this.#errors.inc(this.#labels, storeErrors);
    this.#backlog.set(backlog);
  }
}
