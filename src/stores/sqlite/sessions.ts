import type { Write, WrittenRow } from '../../core/ports/run-store.ts';
import type { Resource } from '../../core/ports/session-store.ts';
import { replaceNul } from './driver.ts';
import type { Numbers } from './numbers.ts';
import type { Statements } from './statements.ts';

const resourcePrefix = '/resources/';
/** Beside such a text, SQLite's order of texts, by bytes, is that of JavaScript, by units of UTF-16. */
const ascii = /^[ -~]*$/;

/** A session by its number. `idle` is 1 where it has no runs, and undefined where the session has no row yet. */
interface NumberedSession {
  readonly session: number;
  readonly idle?: number;
}

/**
 * The sessions of a file, with their resources and histories. The file belongs to one process, so the newest session
 * and the next position are known in memory. Methods that write must be called in a transaction; after a failed one,
 * `recover` reads the file again.
 */
export class FileSessions {
  readonly #sql: Statements;
  readonly #numbers: Numbers;
  /** The session whose id comes after those of all others: the ids that this server makes are in their order. */
  #newest = '';
  /** The position of the newest resource or URL. */
  #position = 0;

  constructor(sql: Statements, numbers: Numbers) {
    this.#sql = sql;
    this.#numbers = numbers;
  }

  recover(): void {
    this.#newest = this.#sql.newestSession.get()?.session_id ?? '';
    this.#position = this.#sql.newestPosition.get()?.position ?? 0;
  }

  /** A new session has the next number, and gets its row with `use`. */
  find(session_id: string): NumberedSession {
    const isLast = session_id > this.#newest && ascii.test(session_id);
    const found = isLast ? undefined : this.#sql.session.get(session_id);
    return found ?? { session: this.#numbers.next() };
  }

  /** Called after the run was inserted, so that a refused one leaves no session behind. */
  use({ session, idle }: NumberedSession, { session_id, owner, created_at }: WrittenRow): void {
    if (idle === undefined) {
      this.#sql.insertSession(session_id, session, owner, created_at);
      if (session_id > this.#newest) this.#newest = session_id;
    } else if (idle === 1) this.#sql.useSession(session_id);
  }

  /**
   * Adds the resources, history and state of a write to its session. The messages of a run are new, and each is listed
   * in the history of the same write. Only URLs that a client names may be in the history already.
   */
  update({ row, resources = [], history = [], state }: Write, session: number): void {
    const own = new Map<string, Resource>();
    for (const resource of resources)
      if (resource.run_id === row.run_id) own.set(`${resourcePrefix}${resource.resource_id}`, resource);
    const listed = new Set<Resource>();
    for (const name of history) {
      const url = replaceNul(name);
      const message = own.get(url);
      if (message === undefined) this.#addUrl(session, url);
      else if (!listed.has(message)) {
        this.#insert(message, session, 1);
        listed.add(message);
      }
    }
    for (const resource of resources) {
      if (listed.has(resource)) continue;
      const { resource_id, run_id } = resource;
      if (run_id !== null) this.#sql.deleteUnlistedResource(resource_id, run_id, session);
      this.#insert(resource, session, 0);
    }
    if (state !== undefined) this.#setState(session, row.session_id, replaceNul(state));
  }

  #insert({ resource_id, session_id, run_id, content_type, body }: Resource, session: number, listed: number): void {
    this.#position += 1;
    const { insertResource } = this.#sql;
    insertResource(this.#position, resource_id, session_id, run_id, content_type, body, session, listed);
  }

  /** A URL that a client named, which may be that of a message. */
  #addUrl(session: number, url: string): void {
    const id = url.startsWith(resourcePrefix) ? url.slice(resourcePrefix.length) : undefined;
    if (id !== undefined && this.#sql.listedMessage.get(id, session) !== undefined) return;
    if (this.#sql.listedUrl.get(session, url) !== undefined) return;
    this.#position += 1;
    this.#sql.insertUrl(this.#position, session, url);
  }

  /** Deletes the previous state, but no resource of another session and no message, which a client may have named. */
  #setState(session: number, session_id: string, state: string): void {
    const before = this.#sql.state.get(session_id, session)?.state ?? null;
    if (before === state) return;
    this.#sql.setState(state, session_id, session);
    if (before?.startsWith(resourcePrefix))
      this.#sql.deleteState.run(before.slice(resourcePrefix.length), session, session_id);
  }
}
