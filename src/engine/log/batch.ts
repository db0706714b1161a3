import type { Batch } from '../../core/ports/run-store.ts';

/**
 * A batch of a live log, with a place for what its readers share, which `readBatch` puts there: V8 would allocate the place
 * apart, for each token.
 */
export function liveBatch(first: number, lines: readonly string[]): Batch {
  const batch = { first, lines, projected: undefined };
  return batch;
}

/** The id of a batch's last event; 0 without a batch. */
export const lastIdOf = (batch: Batch | undefined): number =>
  batch === undefined ? 0 : batch.first + batch.lines.length - 1;
