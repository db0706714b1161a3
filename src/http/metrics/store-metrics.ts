import type { Engine } from '../../engine/engine.ts';
import type { EngineMetrics, Meters } from './meters.ts';

const commitSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const commitWrites = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/** The metrics of a kind of store, as the engine experiences it. */
export function storeMetrics(engine: Engine, { counter, gauge, histogram }: Meters, store: string): EngineMetrics {
  const duration = histogram(
    'store_commit_duration_seconds',
    'Time that the engine waited for a commit.',
    commitSeconds,
    ['store'],
  );
  const writes = histogram('store_commit_writes', 'Writes of a commit; each is of one run.', commitWrites, ['store']);
  for (const one of [duration, writes]) one.zero({ store });
  const up = gauge('store_up', '1 if all of the store answers and takes commits.', ['store']);
  const errors = counter('store_errors_total', 'Commits that failed; each is retried.', ['store']);
  const waiting = gauge('backlog_chars', 'Characters of events that wait for the store.', []);
  return {
    unobserve: [
      engine.on('commit', (seconds, count) => {
        duration.observe({ store }, seconds);
        writes.observe({ store }, count);
      }),
    ],
    fill({ load: { backlog, failing, storeErrors }, open }) {
      up.set({ store }, open !== undefined && !failing ? 1 : 0);
      errors.reset();
      errors.inc({ store }, storeErrors);
      waiting.set(backlog);
    },
  };
}
