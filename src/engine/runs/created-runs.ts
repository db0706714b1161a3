import { LRUCache } from 'lru-cache';
import { messagesOf, type RunInput } from '../../core/request.ts';
import type { RunNotification, RunRow } from '../../core/store.ts';
import type { Run } from '../../schema/run.ts';

/** Characters of all runs that are remembered. */
const maxChars = 4 * 1024 * 1024;
/** Characters of a run's messages above which it is not remembered. To count them otherwise would take as long as to read it. */
const maxInputChars = 64 * 1024;
/** What a run costs beside its texts, in characters. */
const charsPerRun = 1_000;

/** A run as it was created, before its first execution. */
export interface CreatedRun {
  readonly row: RunRow;
  readonly run: Run;
  readonly input: RunInput;
}

/**
 * The newest runs that this process has created and offered to all. Where it executes one itself, as is likely, it need
 * not read the run from the store, which would take four requests. What is remembered may be out of date: then the store
 * fences the execution before it begins, and the run is offered again.
 */
export class CreatedRuns {
  readonly #created = new LRUCache<string, CreatedRun>({
    maxSize: maxChars,
    sizeCalculation: ({ row, input }) => charsPerRun + JSON.stringify([row, input]).length,
  });

  add(created: CreatedRun): void {
    if (contentChars(created.input) <= maxInputChars) this.#created.set(created.row.run_id, created);
  }

  /** Forgets a run that another process has written to. */
  onWritten({ run_id, epoch, last }: Pick<RunNotification, 'run_id' | 'epoch' | 'last'>): void {
    const row = this.#created.peek(run_id)?.row;
    if (row !== undefined && (epoch > row.epoch || last > row.last)) this.#created.delete(run_id);
  }

  /** What is known of a run; only once. */
  take(run_id: string): CreatedRun | undefined {
    const created = this.#created.get(run_id);
    this.#created.delete(run_id);
    return created;
  }
}

const contentChars = (input: RunInput): number =>
  messagesOf(input).reduce(
    (sum, { parts }) => parts.reduce((chars, { content = '' }) => chars + content.length, sum),
    0,
  );
