import type { Retention } from '../../core/store.ts';
import type { Statements } from './statements.ts';

/** Rows that one step deletes at most; a row of events is about 64 KiB at most. */
const stepRows = 32;

/** Clears as much of what is old as fits into so many milliseconds. Answers whether there may be more. */
export function sweepFor(milliseconds: number, sql: Statements, before: Retention): boolean {
  for (const until = performance.now() + milliseconds; clearSome(sql, before); ) {
    if (performance.now() >= until) return true;
  }
  return false;
}

/** Takes a run away but for its log, which goes bit by bit; what it said stays. */
function retire(sql: Statements, run_id: string, session: number, finished_at: string): void {
  sql.insertRemoved.run(run_id);
  sql.deleteRun.run(run_id);
  sql.left.run(finished_at, session);
}

/** Takes a run away with what it said. */
export function removeRun(sql: Statements, run_id: string, session: number, finished_at: string): void {
  for (const { url } of sql.deleteHistory.all(run_id)) sql.deleteResource.run(idOf(url));
  sql.deleteUnlisted.run(session, run_id);
  retire(sql, run_id, session, finished_at);
}

/** One step. Answers whether there was anything to clear. */
function clearSome(sql: Statements, { runs, keys, sessions }: Retention): boolean {
  const removed = sql.removed.get();
  if (removed !== undefined) return clearLog(sql, removed.run_id);
  const left = sql.removedSession.get();
  if (left !== undefined) return clearSession(sql, left.session);
  const old = runs === undefined ? undefined : sql.retired.get(runs);
  if (old !== undefined) {
    retire(sql, old.run_id, old.session, old.finished_at);
    return true;
  }
  const idle = sessions === undefined ? undefined : sql.idle.get(sessions);
  if (idle !== undefined) {
    sql.forgetSession.run(idle.session);
    return true;
  }
  return sql.clearKeys.run(keys, stepRows).changes > 0;
}

function clearLog(sql: Statements, run_id: string): boolean {
  const events = sql.clearEvents.run(run_id, stepRows).changes;
  const lines = sql.clearJournal.run(run_id, stepRows).changes;
  if (events < stepRows && lines < stepRows) sql.clearRemoved.run(run_id);
  return true;
}

/** Of a session that was removed: its runs, then its messages, then the rest, and at last the session. */
function clearSession(sql: Statements, session: number): boolean {
  const run = sql.runOfSession.get(session);
  if (run !== undefined) {
    retire(sql, run.run_id, session, run.finished_at);
    return true;
  }
  const messages = sql.clearHistory.all(session, session, stepRows);
  for (const { url, run_id } of messages) if (run_id !== null) sql.deleteResource.run(idOf(url));
  if (messages.length > 0 || sql.clearResources.run(session, stepRows).changes > 0) return true;
  sql.deleteSession.run(session);
  return true;
}

const idOf = (url: string): string => url.slice('/resources/'.length);
