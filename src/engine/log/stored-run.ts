import { encode } from '../../core/encode.ts';
import { fail, RivuletError } from '../../core/errors.ts';
import { fold } from '../../core/fold.ts';
import type { RunRow, Write } from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import { sessionIdOf } from '../../core/principal.ts';
import { isFinal } from '../../core/run-state.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Event } from '../../schema/event.ts';
import type { Parked, Run, RunSummary } from '../../schema/run.ts';
import { type KnownRun, readCheckpoint } from './checkpoint.ts';
import { readPage } from './page-cache.ts';

/** The lines of a log after an event, up to `row.last`, a page at a time. @throws RivuletError `log_removed` */
async function* readPages(store: Store, row: RunRow, after: number): AsyncGenerator<string[], void, undefined> {
  for (let seen = after; seen < row.last; ) {
    const lines: string[] = [];
    for (const batch of await readPage(store, row.run_id, seen)) {
      const fresh = batch.lines.slice(Math.max(0, seen + 1 - batch.first), row.last + 1 - batch.first);
      for (const line of fresh) lines.push(line);
      seen += fresh.length;
      if (seen >= row.last) break;
    }
    yield lines;
  }
}

/** The lines of a log after an event, up to `row.last`. @throws RivuletError `log_removed` */
export async function readLines(store: Store, row: RunRow, after: number): Promise<string[]> {
  const found: string[] = [];
  for await (const lines of readPages(store, row, after)) for (const line of lines) found.push(line);
  return found;
}

/**
 * The Run of a stored log. A final run's last event carries it; any other is folded from the first event on, or from a
 * Run that is known or has a checkpoint, a page at a time. @throws RivuletError `log_removed`, `log_damaged`
 */
export async function foldStored(store: Store, row: RunRow, known?: KnownRun): Promise<Run> {
  const isWhole = isFinal(row.status);
  const base = isWhole ? undefined : await baseOf(store, row, known);
  let run = base?.run;
  const after = isWhole ? row.last - 1 : (base?.last ?? 0);
  for await (const lines of readPages(store, row, after)) {
    for (const line of lines) {
      const event = parseLine<Event>(row.run_id, line);
      if (run !== undefined) run = fold(run, event);
      else if ('run' in event) run = event.run;
      else throw fail('log_damaged', row.run_id);
    }
  }
  if (run === undefined) throw fail('log_damaged', row.run_id);
  // `cancelling` has no event of its own.
  return { ...run, status: row.status };
}

/** What the Run of a row is folded from: what is known, or else a checkpoint, unless it is newer than the row. */
async function baseOf(store: Store, row: RunRow, known: KnownRun | undefined): Promise<KnownRun | undefined> {
  const isUsable = (one: KnownRun | undefined): boolean => one !== undefined && one.last > 0 && one.last <= row.last;
  if (isUsable(known)) return known;
  const checkpoint = await readCheckpoint(store, row);
  return isUsable(checkpoint) ? checkpoint : undefined;
}

/**
 * A run for a list: with its title, and without its output. It reads at most one event. A run that was removed meanwhile, or
 * whose log is damaged, is described by its row alone.
 */
export async function summaryOf(store: Store, row: RunRow): Promise<RunSummary> {
  const { run_id, agent_name, session_id, status, title, created_at, finished_at } = row;
  const known: RunSummary = {
    run_id,
    agent_name,
    session_id: sessionIdOf(session_id),
    status,
    title,
    output: [],
    created_at,
    ...(finished_at !== null && { finished_at }),
    ...parkedOf(row),
  };
  if (status !== 'awaiting' && status !== 'failed') return known;
  try {
    const [page] = await readPage(store, run_id, row.snapshot - 1, 1);
    const event = parseLine<Event>(run_id, page?.lines[row.snapshot - page.first] ?? '');
    if (!('run' in event)) return known;
    const { await_request, error } = event.run;
    return { ...known, ...(await_request && { await_request }), ...(error && { error }) };
  } catch (error) {
    if (isUnreadable(error)) return known;
    throw error;
  }
}

/** The field `parked` of a Run as clients read it. No event of the log has it. */
export const parkedOf = ({ parked, rests_at }: RunRow): { parked?: Parked } =>
  parked === null || rests_at === null ? {} : { parked: { reason: parked, at: rests_at } };

/** Parses a line of a log or of a journal. @throws RivuletError `log_damaged` */
export function parseLine<T>(run_id: string, line: string): T {
  try {
    return JSON.parse(line);
  } catch (cause) {
    const error = fail('log_damaged', run_id);
    error.cause = cause;
    throw error;
  }
}

/**
 * The write that ends a run that has no execution in this process: failed with an error, or else cancelled. A run that
 * is `cancelling` always ends cancelled. The write raises the epoch, so that an execution in another process is fenced.
 * `run` is the Run of the log so far, with the reason of a cancel.
 */
export function endingWrite(row: RunRow, run: Run, finished_at: string, error?: ErrorBody): Write {
  const { await_request: _, ...rest } = run;
  const ended: Run =
    error === undefined || row.status === 'cancelling'
      ? { ...rest, status: 'cancelled', finished_at }
      : { ...rest, status: 'failed', finished_at, error };
  return {
    row: {
      ...row,
      epoch: row.epoch + 1,
      status: ended.status,
      status_at: finished_at,
      finished_at,
      snapshot: row.last + 1,
      due: null,
      rests_at: null,
      parked: null,
      queued_at: null,
    },
    from: row.epoch,
    expect: row.last,
    lines: [encode({ type: ended.status === 'cancelled' ? 'run.cancelled' : 'run.failed', run: ended })],
    ...(ended.status === 'failed' && { ended: { tokens: 0, seconds: 0 } }),
  };
}

/**
 * As `foldStored`; where the log cannot be read, the Run of the row alone, without output.
 * @throws any error of the store
 */
export async function readRun(store: Store, row: RunRow, known?: KnownRun): Promise<KnownRun> {
  try {
    return { run: await foldStored(store, row, known), last: row.last };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return { run: bareRun(row), last: 0 };
  }
}

/** The Run of a row alone: without output, questions and replies. */
export function bareRun({ run_id, agent_name, session_id, status, created_at }: RunRow): Run {
  return { run_id, agent_name, session_id: sessionIdOf(session_id), status, output: [], created_at };
}

const isUnreadable = (error: unknown): boolean =>
  error instanceof RivuletError && (error.kind === 'log_damaged' || error.kind === 'log_removed');
