import type { Write } from '../core/store.ts';
import type { Statements } from './sqlite-statements.ts';

const none: ReadonlySet<string> = new Set();

/**
 * Keeps what a write adds to its session. A run's messages come with their places in the history, so those places
 * are how they are found again, and they are new. Only what a client names may be there already: then the history
 * is read, once, since an index of its URLs would cost each run more than that costs the few.
 */
export function remember(sql: Statements, { row, resources = [], history = [], state }: Write): void {
  const { run_id, session_id } = row;
  const own = new Set<string>();
  for (const one of resources)
    if (one.run_id === run_id && one.session_id === session_id) own.add(`/resources/${one.resource_id}`);
  const isNew = history.every((url) => own.has(url));
  const known = isNew ? none : new Set(sql.history.all(session_id).map(({ url }) => url));
  const added = new Set(history.filter((url) => !known.has(url)));
  for (const { resource_id, session_id, run_id, content_type, body } of resources) {
    const url = `/resources/${resource_id}`;
    const listed = own.has(url) && added.has(url) ? 1 : 0;
    sql.insertResource.run(resource_id, session_id, run_id, content_type, body, listed);
  }
  for (const url of added) sql.insertHistory.run(session_id, session_id, url, own.has(url) ? run_id : null);
  if (state !== undefined) sql.setState.run(state, session_id);
}
