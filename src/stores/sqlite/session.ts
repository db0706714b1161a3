import type { Write } from '../../core/store.ts';
import type { Statements } from './statements.ts';

const prefix = '/resources/';

/**
 * Keeps what a write adds to its session. A run's messages come with their places in the history, so those places
 * are how they are found again, and they are new. Only what a client names may be there already.
 */
export function remember(sql: Statements, write: Write, session: number): void {
  const { row, resources = [], state } = write;
  const history = write.history?.map(storable) ?? [];
  const own = new Set<string>();
  for (const { resource_id, run_id } of resources) if (run_id === row.run_id) own.add(`${prefix}${resource_id}`);
  const added = new Set(history.filter((url) => own.has(url) || !isKnown(sql, session, url)));
  for (const { resource_id, session_id, run_id, content_type, body } of resources) {
    const url = `${prefix}${resource_id}`;
    const listed = own.has(url) && added.has(url) ? 1 : 0;
    sql.insertResource.run(resource_id, session_id, run_id, content_type, body, session, listed);
  }
  for (const url of added) sql.insertHistory.run(session, session, url, own.has(url) ? row.run_id : null);
  if (state !== undefined) setState(sql, session, row.session_id, storable(state));
}

/** Clients send these URLs, and one with a zero could not be kept. */
const storable = (url: string): string => (url.includes('\0') ? url.replaceAll('\0', '\ufffd') : url);

function isKnown(sql: Statements, session: number, url: string): boolean {
  if (sql.named.get(session, url) !== undefined) return true;
  return url.startsWith(prefix) && sql.listed.get(url.slice(prefix.length), session) !== undefined;
}

/** What was the state before goes; not what another session keeps, nor a message, which a client may have named. */
function setState(sql: Statements, session: number, session_id: string, state: string): void {
  const before = sql.state.get(session)?.state ?? null;
  if (before === state) return;
  sql.setState.run(state, session);
  if (before?.startsWith(prefix)) sql.deleteState.run(before.slice(prefix.length), session, session_id);
}
