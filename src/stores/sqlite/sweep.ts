import type { Cutoffs } from '../../core/ports/store.ts';
import type { Statements } from './statements.ts';
import type { StatusLists } from './status-lists.ts';

/** The largest number of rows that one step deletes; a row of events has about 64 KiB at most. */
const stepRows = 32;

/** Deletes old data for the given time. Returns whether there may be more. */
export function sweepFor(milliseconds: number, sql: Statements, lists: StatusLists, before: Cutoffs): boolean {
  for (const until = performance.now() + milliseconds; sweepStep(sql, lists, before); ) {
    if (performance.now() >= until) return true;
  }
  return false;
}

/** Deletes the row of a run. Later steps clear its events and journal; its messages stay in the session. */
function deleteRun(sql: Statements, run_id: string, finished_at: string): void {
  const deleted = sql.deleteRun.get(run_id);
  if (deleted === undefined) return;
  sql.insertRemoved.run(deleted.number);
  sql.touchSession.run(finished_at, deleted.session_id, deleted.session);
}

/** Deletes a run with its messages and deliveries. */
export function removeRun(sql: Statements, run_id: string, session: number, finished_at: string): void {
  sql.deleteListed.run(session, run_id);
  sql.deleteUnlisted.run(session, run_id);
  sql.deleteDeliveries.run(run_id);
  deleteRun(sql, run_id, finished_at);
}

/** Deletes a session. Later steps clear its runs and messages, while a new session may have its id. */
export function removeSession(sql: Statements, session_id: string): void {
  const deleted = sql.deleteSession.get(session_id);
  if (deleted !== undefined) sql.insertRemovedSession.run(deleted.session);
}

/** Deletes some of what an owner has beside its sessions. Returns whether there may be more. */
export function removeOwned(sql: Statements, owner: string): boolean {
  sql.clearFigures.run(owner);
  const keys = sql.clearKeysOf.run(owner, stepRows).changes;
  const deliveries = sql.clearDeliveriesOf.run(owner, stepRows).changes;
  return keys + deliveries + sql.clearUrlFailuresOf.run(owner, stepRows).changes > 0;
}

/** One step. Returns whether there was anything to delete. */
function sweepStep(sql: Statements, lists: StatusLists, { runs, keys, sessions, deliveries }: Cutoffs): boolean {
  const removedRun = sql.removedRun.get();
  if (removedRun !== undefined) return clearLog(sql, removedRun.run);
  const removedSession = sql.removedSession.get();
  if (removedSession !== undefined) return clearSession(sql, removedSession.session);
  const old = runs === undefined ? [] : lists.endedBefore(runs, stepRows);
  for (const { run_id, status_at } of old) deleteRun(sql, run_id, status_at);
  if (old.length > 0) return true;
  const idle = sessions === undefined ? undefined : sql.idleSession.get(sessions);
  if (idle !== undefined) {
    removeSession(sql, idle.session_id);
    return true;
  }
  const ended = deliveries === undefined ? 0 : sql.clearDeliveries.run(deliveries, stepRows).changes;
  const failing = deliveries === undefined ? 0 : sql.clearUrlFailures.run(deliveries, stepRows).changes;
  return ended + failing + sql.clearKeys.run(keys, stepRows).changes > 0;
}

function clearLog(sql: Statements, run: number): boolean {
  const events = sql.clearEvents.run(run, stepRows).changes;
  const lines = sql.clearJournal.run(run, stepRows).changes;
  if (events < stepRows && lines < stepRows) sql.clearRemoved.run(run);
  return true;
}

/** Clears a deleted session: its runs, then its messages, then its other resources, and at last its number. */
function clearSession(sql: Statements, session: number): boolean {
  const run = sql.runOfSession.get(session);
  if (run !== undefined) {
    sql.deleteDeliveries.run(run.run_id);
    deleteRun(sql, run.run_id, run.finished_at);
    return true;
  }
  for (const clear of [sql.clearListed, sql.clearUrls, sql.clearUnlisted])
    if (clear.run(session, stepRows).changes > 0) return true;
  sql.clearRemovedSession.run(session);
  return true;
}
