import { append } from '../core/append.ts';
import { isFinal } from '../core/status.ts';
import type {
  AgentFigures,
  Batch,
  Key,
  Outcome,
  Resource,
  RunFilter,
  RunRow,
  SessionRow,
  Store,
  When,
  Write,
} from '../core/store.ts';
import type { Message } from '../schema/message.ts';
import { Arena } from './arena.ts';
import { withEnded } from './figures.ts';
import { MemoryLog } from './memory-log.ts';

interface Kept {
  row: RunRow;
  /** For as long as the run may be re-entered. */
  input: readonly Message[] | undefined;
  readonly log: MemoryLog;
  readonly session: KeptSession;
  journal: string[];
  resources: string[];
}

/** Lists: a session has one run more often than not, and a Set is 200 bytes. */
interface KeptSession {
  runs: string[];
  history: string[];
  resources: string[];
  state: string | null;
}

/** How many runs one sweep looks at. */
const sweepRuns = 100;

/** Keeps everything in this process: for tests, and where losing it all is fine. */
export class MemoryStore implements Store {
  // A Map keeps the order of insertion, which is that of the runs' ids.
  readonly #runs = new Map<string, Kept>();
  readonly #unfinished = new Set<string>();
  /** When each is due. */
  readonly #due = new Map<string, string>();
  readonly #sessions = new Map<string, KeptSession>();
  readonly #resources = new Map<string, Resource>();
  readonly #keys = new Map<string, Key>();
  readonly #figures = new Map<string, AgentFigures>();
  readonly #arena = new Arena();

  async commit(writes: readonly Write[]): Promise<Outcome[]> {
    return writes.map((write) => this.#take(write));
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    return this.#runs.get(run_id)?.row;
  }

  async input(run_id: string): Promise<Message[] | undefined> {
    const input = this.#runs.get(run_id)?.input;
    return input === undefined ? undefined : structuredClone([...input]);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    return this.#runs.get(run_id)?.log.after(after, limit) ?? [];
  }

  async journal(run_id: string): Promise<string[]> {
    return [...(this.#runs.get(run_id)?.journal ?? [])];
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    const { agent_name, session_id, status } = filter;
    const ids = session_id === undefined ? this.#runs.keys() : (this.#sessions.get(session_id)?.runs ?? []);
    return this.#rows(ids)
      .filter((row) => agent_name === undefined || row.agent_name === agent_name)
      .filter((row) => status === undefined || row.status === status)
      .filter((row) => before === undefined || row.run_id < before)
      .sort((a, b) => (a.run_id < b.run_id ? 1 : -1))
      .slice(0, limit);
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    // A session's runs are few, however many there are in all; each new run with `If-Busy` looks here.
    const ids = session_id === undefined ? this.#unfinished : (this.#sessions.get(session_id)?.runs ?? []);
    return this.#rows(ids)
      .filter((row) => row.finished_at === null && row.run_id > after)
      .sort((a, b) => (a.run_id < b.run_id ? -1 : 1))
      .slice(0, limit);
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    const found: RunRow[] = [];
    // Looked at every second: one pass over the times, without a copy of what is not due.
    for (const [run_id, time] of this.#due) {
      if (found.length === limit) break;
      if (time <= now) found.push(...this.#rows([run_id]));
    }
    return found;
  }

  async count(session_id: string): Promise<number> {
    return this.#rows(this.#sessions.get(session_id)?.runs ?? []).filter((row) => row.finished_at === null).length;
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    return this.#keys.get(JSON.stringify([scope, key]));
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    const session = this.#sessions.get(session_id);
    return session && { session_id, history: [...session.history], state: session.state };
  }

  async resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]> {
    return resource_ids.map((id) => this.#resources.get(id));
  }

  async figures(agent_names: readonly string[]): Promise<AgentFigures[]> {
    return agent_names.flatMap((name) => this.#figures.get(name) ?? []);
  }

  async remove(run_id: string): Promise<boolean> {
    const kept = this.#runs.get(run_id);
    if (kept === undefined) return true;
    if (!isFinal(kept.row.status)) return false;
    const session = this.#sessions.get(kept.row.session_id);
    for (const resource_id of kept.resources) {
      this.#resources.delete(resource_id);
      takeOut(session?.resources, resource_id);
      takeOut(session?.history, `/resources/${resource_id}`);
    }
    this.#drop(kept.row);
    return true;
  }

  async removeSession(session_id: string): Promise<boolean> {
    const session = this.#sessions.get(session_id);
    if (session === undefined) return true;
    const rows = this.#rows(session.runs);
    if (rows.some(({ status }) => !isFinal(status))) return false;
    for (const row of rows) this.#drop(row);
    for (const resource_id of session.resources) this.#resources.delete(resource_id);
    this.#sessions.delete(session_id);
    return true;
  }

  async sweep(before: { runs?: string; keys: string }): Promise<boolean> {
    for (const [id, { created_at }] of this.#keys) {
      if (created_at >= before.keys) break;
      this.#keys.delete(id);
    }
    if (before.runs === undefined) return false;
    let seen = 0;
    let dropped = 0;
    for (const { row } of this.#runs.values()) {
      if (row.finished_at !== null && row.finished_at < before.runs) {
        this.#drop(row);
        dropped += 1;
      }
      seen += 1;
      if (seen === sweepRuns) break;
    }
    return dropped > 0;
  }

  async close(): Promise<void> {}

  #rows(ids: Iterable<string>): RunRow[] {
    return [...ids].flatMap((id) => this.#runs.get(id)?.row ?? []);
  }

  #drop({ run_id, session_id }: RunRow): void {
    this.#runs.delete(run_id);
    this.#unfinished.delete(run_id);
    this.#due.delete(run_id);
    takeOut(this.#sessions.get(session_id)?.runs, run_id);
  }

  #take(write: Write): Outcome {
    const { row, key } = write;
    const keyId = key && JSON.stringify([key.scope, key.key]);
    const known = keyId === undefined ? undefined : this.#keys.get(keyId);
    if (key !== undefined && known !== undefined && known.created_at >= key.fresh) return 'key_used';
    if (write.when !== undefined && this.#isBusy(row, write.when)) return 'session_busy';
    let kept = this.#runs.get(row.run_id);
    if (write.expect === 0 && write.input !== undefined && kept === undefined) {
      const session = this.#session(row.session_id);
      kept = { row, input: write.input, log: new MemoryLog(this.#arena), session, journal: [], resources: [] };
      this.#runs.set(row.run_id, kept);
      this.#unfinished.add(row.run_id);
      session.runs = append(session.runs, row.run_id);
    } else if (kept === undefined || kept.row.last !== write.expect) {
      return 'fenced';
    } else if (kept.row.epoch !== (write.from ?? row.epoch) || isFinal(kept.row.status)) {
      return 'fenced';
    }
    if (key !== undefined && keyId !== undefined) {
      this.#keys.delete(keyId);
      this.#keys.set(keyId, key);
    }
    if (row.due !== null) this.#due.set(row.run_id, row.due);
    else if (kept.row.due !== null) this.#due.delete(row.run_id);
    kept.row = row;
    kept.log.append(write);
    if (isFinal(row.status)) {
      kept.input = undefined;
      kept.log.pack();
      this.#unfinished.delete(row.run_id);
    }
    for (const line of write.journal ?? []) kept.journal = append(kept.journal, line);
    if (write.history || write.resources || write.state !== undefined) this.#extend(kept, write);
    if (write.ended !== undefined) this.#count(row, write.ended);
    return 'taken';
  }

  /** Whether the condition of a write holds; see `Write.when`. */
  #isBusy({ run_id, session_id }: RunRow, when: When): boolean {
    return (this.#sessions.get(session_id)?.runs ?? []).some((id) => {
      if (id === run_id || this.#runs.get(id)?.row.finished_at !== null) return false;
      return when === 'alone' || (when === 'first' ? id < run_id : id > run_id);
    });
  }

  #session(session_id: string): KeptSession {
    let session = this.#sessions.get(session_id);
    if (session === undefined) {
      session = { runs: [], history: [], resources: [], state: null };
      this.#sessions.set(session_id, session);
    }
    return session;
  }

  #extend(kept: Kept, { history, state, resources }: Write): void {
    const { session } = kept;
    for (const resource of resources ?? []) {
      this.#resources.set(resource.resource_id, resource);
      session.resources = append(session.resources, resource.resource_id);
      if (resource.run_id !== null) kept.resources = append(kept.resources, resource.resource_id);
    }
    for (const url of history ?? []) {
      // What the run itself has said is new; to look for it would cost the more the longer the session is.
      const isOwn = resources?.some(({ resource_id }) => url.endsWith(resource_id)) === true;
      if (isOwn || !session.history.includes(url)) session.history = append(session.history, url);
    }
    if (state !== undefined) session.state = state;
  }

  #count(row: RunRow, ended: { tokens: number; seconds: number }): void {
    this.#figures.set(row.agent_name, withEnded(this.#figures.get(row.agent_name), row, ended));
  }
}

function takeOut(list: string[] | undefined, id: string): void {
  const at = list?.indexOf(id) ?? -1;
  if (at >= 0) list?.splice(at, 1);
}
