import { runEventOf } from '../../core/encode.ts';
import type { Batch } from '../../core/store.ts';

/** The id of a batch's last event; 0 without a batch. */
export const lastIdOf = (batch: Batch | undefined): number =>
  batch === undefined ? 0 : batch.first + batch.lines.length - 1;

export const charsOf = ({ lines }: Batch): number => lines.reduce((sum, line) => sum + line.length, 0);

const settlingEvents = new Set(['awaiting', 'completed', 'failed', 'cancelled']);

/** Whether a line is a run event that settles the run: a waiting request is answered then. */
export function isSettling(line: string | undefined): boolean {
  const kind = line === undefined ? undefined : runEventOf(line);
  return kind !== undefined && settlingEvents.has(kind);
}
