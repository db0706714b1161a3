import type { Batch } from '../../core/store.ts';

/** The id of a batch's last event; 0 without a batch. */
export const lastIdOf = (batch: Batch | undefined): number =>
  batch === undefined ? 0 : batch.first + batch.lines.length - 1;
