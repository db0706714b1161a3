import { append } from '../../core/collections.ts';
import { isFinal } from '../../core/run-state.ts';
import type {
  AgentFigures,
  Batch,
  Key,
  Outcome,
  Resource,
  Retention,
  RunFilter,
  RunRow,
  SessionRow,
  Store,
  When,
  Write,
} from '../../core/store.ts';
import type { Message } from '../../schema/message.ts';
import { withEnded } from '../figures.ts';
import { Arena } from './arena.ts';
import { MemoryLog } from './log.ts';
import { byId, type Kept, KeptSession, order } from './session.ts';
import { Sorted } from './sorted.ts';

/** How many runs, resources, sessions and keys one sweep clears: less than a millisecond. */
const sweepSize = 200;

/** Keeps everything in this process: for tests, and where losing it all is fine. */
export class MemoryStore implements Store {
  readonly #runs = new Map<string, Kept>();
  readonly #byId = new Sorted(byId);
  readonly #unfinished = new Sorted(byId);
  readonly #due = new Sorted<Kept>((a, b) => order(a.row.due ?? '', b.row.due ?? '') || byId(a, b));
  readonly #ended = new Sorted<Kept>((a, b) => order(a.row.finished_at ?? '', b.row.finished_at ?? '') || byId(a, b));
  readonly #sessions = new Map<string, KeptSession>();
  /** Those without runs. */
  readonly #idle = new Sorted<KeptSession>((a, b) => order(a.used, b.used) || order(a.session_id, b.session_id));
  #removed: KeptSession[] = [];
  readonly #resources = new Map<string, Resource>();
  readonly #keys = new Map<string, Key>();
  readonly #keysByAge = new Sorted<Key>((a, b) => order(a.created_at, b.created_at) || order(nameOf(a), nameOf(b)));
  readonly #figures = new Map<string, AgentFigures>();
  readonly #arena = new Arena();

  async commit(writes: readonly Write[]): Promise<Outcome[]> {
    return writes.map((write) => this.#take(write));
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    return this.#find(run_id)?.row;
  }

  async input(run_id: string): Promise<Message[] | undefined> {
    const input = this.#find(run_id)?.input;
    return input === undefined ? undefined : structuredClone([...input]);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    return this.#find(run_id)?.log.after(after, limit) ?? [];
  }

  async journal(run_id: string): Promise<string[]> {
    return [...(this.#find(run_id)?.journal ?? [])];
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    const { agent_name, session_id, status } = filter;
    const runs = session_id === undefined ? this.#byId : this.#sessions.get(session_id)?.runs;
    const found: RunRow[] = [];
    for (const { row, session } of runs?.descending(({ row }) => before !== undefined && row.run_id >= before) ?? []) {
      if (found.length === limit) break;
      if (session.removed || (agent_name !== undefined && row.agent_name !== agent_name)) continue;
      if (status === undefined || row.status === status) found.push(row);
    }
    return found;
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    const runs = session_id === undefined ? this.#unfinished : this.#sessions.get(session_id)?.unfinished;
    return rows(
      runs?.ascending(({ row }) => row.run_id > after),
      limit,
    );
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    return rows(this.#due.ascending(), limit, ({ row }) => (row.due ?? '') <= now);
  }

  async count(session_id: string): Promise<number> {
    return this.#sessions.get(session_id)?.unfinished?.size ?? 0;
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    return this.#keys.get(nameOf({ scope, key }));
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    const session = this.#sessions.get(session_id);
    return session && { session_id, history: session.history.all(), state: session.state };
  }

  async resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]> {
    return resource_ids.map((id) => this.#resources.get(id));
  }

  async figures(agent_names: readonly string[]): Promise<AgentFigures[]> {
    return agent_names.flatMap((name) => this.#figures.get(name) ?? []);
  }

  async remove(run_id: string): Promise<boolean> {
    const kept = this.#find(run_id);
    if (kept === undefined) return true;
    if (!isFinal(kept.row.status)) return false;
    for (const resource_id of kept.resources) {
      this.#forget(kept.session, resource_id);
      kept.session.history.delete(urlOf(resource_id));
    }
    this.#drop(kept);
    return true;
  }

  async removeSession(session_id: string): Promise<boolean> {
    const session = this.#sessions.get(session_id);
    if (session === undefined) return true;
    if (session.unfinished !== undefined) return false;
    this.#idle.delete(session);
    this.#sessions.delete(session_id);
    session.removed = true;
    this.#removed = append(this.#removed, session);
    return true;
  }

  async sweep(before: Retention): Promise<boolean> {
    let left = sweepSize;
    const { runs = '', sessions = '', keys } = before;
    for (let old = this.#ended.first; left > 0 && old !== undefined; old = this.#ended.first, left -= 1) {
      if ((old.row.finished_at ?? '') >= runs) break;
      this.#drop(old);
    }
    for (let old = this.#idle.first; left > 0 && old !== undefined; old = this.#idle.first, left -= 1) {
      if (old.used >= sessions) break;
      await this.removeSession(old.session_id);
    }
    for (let old = this.#keysByAge.first; left > 0 && old !== undefined; old = this.#keysByAge.first, left -= 1) {
      if (old.created_at >= keys) break;
      this.#keysByAge.delete(old);
      this.#keys.delete(nameOf(old));
    }
    return this.#clear(left) === 0;
  }

  async close(): Promise<void> {}

  /** Clears so many of what is left of removed sessions, at most. Answers how many it could have cleared beside. */
  #clear(count: number): number {
    let left = count;
    for (let session = this.#removed.at(-1); left > 0 && session !== undefined; session = this.#removed.at(-1)) {
      for (let run = session.runs.first; left > 0 && run !== undefined; run = session.runs.first, left -= 1) {
        this.#drop(run);
      }
      const resources = session.resources.take(left);
      for (const resource_id of resources) this.#resources.delete(resource_id);
      left -= resources.length;
      if (left > 0) this.#removed.pop();
    }
    return left;
  }

  #find(run_id: string): Kept | undefined {
    const kept = this.#runs.get(run_id);
    return kept?.session.removed ? undefined : kept;
  }

  /** Takes a run away that is over; what it said stays. */
  #drop(kept: Kept): void {
    const { row, session } = kept;
    this.#runs.delete(row.run_id);
    this.#byId.delete(kept);
    this.#ended.delete(kept);
    session.runs.delete(kept);
    if (row.finished_at !== null && row.finished_at > session.used) session.used = row.finished_at;
    if (session.runs.size === 0 && !session.removed) this.#idle.add(session);
  }

  #forget(session: KeptSession, resource_id: string): void {
    this.#resources.delete(resource_id);
    session.resources.delete(resource_id);
  }

  #take(write: Write): Outcome {
    const { row, key } = write;
    const known = key && this.#keys.get(nameOf(key));
    if (key !== undefined && known !== undefined && known.created_at >= key.fresh) return 'key_used';
    if (write.when !== undefined && this.#isBusy(row, write.when)) return 'session_busy';
    let kept = this.#find(row.run_id);
    const isNew = write.expect === 0 && write.input !== undefined && kept === undefined;
    if (!isNew) {
      if (kept === undefined || kept.row.last !== write.expect) return 'fenced';
      if (kept.row.epoch !== (write.from ?? row.epoch) || isFinal(kept.row.status)) return 'fenced';
    }
    const twice = write.resources?.find(({ resource_id }) => this.#resources.has(resource_id));
    if (twice !== undefined) return { rejected: new Error(`there is a resource ${twice.resource_id} already`) };
    kept ??= this.#begin(write);
    if (key !== undefined) this.#remember(key, known);
    if (write.grown === true) kept.row = row;
    else this.#change(kept, row);
    kept.log.append(write);
    if (kept.row.finished_at !== null) kept.log.pack();
    for (const line of write.journal ?? []) kept.journal = append(kept.journal, line);
    if (write.history || write.resources || write.state !== undefined) this.#extend(kept, write);
    if (write.ended) this.#figures.set(row.agent_name, withEnded(this.#figures.get(row.agent_name), row, write.ended));
    return 'taken';
  }

  /** Whether the condition of a write does not hold. */
  #isBusy({ run_id, session_id }: RunRow, when: When): boolean {
    const others = this.#sessions.get(session_id)?.unfinished;
    const [first, last] = [others?.first?.row.run_id ?? run_id, others?.last?.row.run_id ?? run_id];
    return (when !== 'last' && first < run_id) || (when !== 'first' && last > run_id);
  }

  #begin({ row, input }: Write): Kept {
    const { session_id, run_id, created_at } = row;
    let session = this.#sessions.get(session_id);
    if (session === undefined) {
      session = new KeptSession(session_id);
      this.#sessions.set(session_id, session);
    } else if (session.runs.size === 0) {
      this.#idle.delete(session);
    }
    if (created_at > session.used) session.used = created_at;
    const isNew = row.due === null && row.finished_at === null;
    const before = isNew ? row : { ...row, due: null, finished_at: null };
    const kept: Kept = { row: before, input, log: new MemoryLog(this.#arena), session, journal: [], resources: [] };
    this.#runs.set(run_id, kept);
    this.#byId.add(kept);
    this.#unfinished.add(kept);
    session.runs.add(kept);
    session.unfinished ??= new Sorted(byId);
    session.unfinished.add(kept);
    return kept;
  }

  /** A row that differs in more than its end; the lists that are sorted by something of it have to know. */
  #change(kept: Kept, row: RunRow): void {
    if (kept.row.due !== row.due && kept.row.due !== null) this.#due.delete(kept);
    const isDue = kept.row.due !== row.due && row.due !== null;
    kept.row = row;
    if (isDue) this.#due.add(kept);
    if (row.finished_at === null) return;
    kept.input = undefined;
    this.#ended.add(kept);
    this.#unfinished.delete(kept);
    const { session } = kept;
    session.unfinished?.delete(kept);
    if (session.unfinished?.size === 0) session.unfinished = undefined;
  }

  #remember(key: Key, known: Key | undefined): void {
    if (known !== undefined) this.#keysByAge.delete(known);
    this.#keys.set(nameOf(key), key);
    this.#keysByAge.add(key);
  }

  #extend(kept: Kept, { history, state, resources }: Write): void {
    const { session } = kept;
    for (const resource of resources ?? []) {
      this.#resources.set(resource.resource_id, resource);
      session.resources.add(resource.resource_id);
      if (resource.run_id !== null) kept.resources = append(kept.resources, resource.resource_id);
    }
    for (const url of history ?? []) session.history.add(url);
    if (state !== undefined) this.#setState(session, state);
  }

  /** What was the state before goes; not what another session keeps, nor a message, which a client may have named. */
  #setState(session: KeptSession, state: string): void {
    const before = session.state;
    session.state = state;
    if (before === null || before === state || !before.startsWith(prefix)) return;
    const old = this.#resources.get(before.slice(prefix.length));
    if (old?.run_id === null && old.session_id === session.session_id) this.#forget(session, old.resource_id);
  }
}

const prefix = '/resources/';
const urlOf = (resource_id: string): string => `${prefix}${resource_id}`;

/** A key in its scope. */
const nameOf = ({ scope, key }: { scope: string; key: string }): string => JSON.stringify([scope, key]);

/** The rows of the first runs, for as long as that holds. */
function rows(runs: Iterable<Kept> | undefined, limit: number, holds?: (kept: Kept) => boolean): RunRow[] {
  const found: RunRow[] = [];
  for (const kept of runs ?? []) {
    if (found.length === limit || holds?.(kept) === false) break;
    found.push(kept.row);
  }
  return found;
}
