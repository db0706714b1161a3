import { compareText } from '../../core/collections.ts';
import type { AgentFigures, OpenRuns, RunFilter, StatusFilter, StatusPosition } from '../../core/ports/run-lists.ts';
import type {
  Batch,
  Key,
  Outcome,
  RunRow,
  SharedColumn,
  SharedValue,
  When,
  Write,
  WrittenRow,
} from '../../core/ports/run-store.ts';
import type { Resource, SessionRow } from '../../core/ports/session-store.ts';
import type { Cutoffs, Store } from '../../core/ports/store.ts';
import type { RunInput } from '../../core/request.ts';
import { isFinal } from '../../core/run-state.ts';
import type { RunStatus } from '../../schema/run.ts';
import { everyone, figuresOf, sumOf } from '../figures.ts';
import { compareStatusTimes, matchesStatus, newestStatuses } from '../status-times.ts';
import { MemoryDeliveries } from './deliveries.ts';
import { MemoryLog } from './log.ts';
import { Sorted } from './sorted.ts';

/** Runs, sessions and keys that one sweep deletes. */
const sweepSize = 200;
const prefix = '/resources/';

interface RunRecord {
  row: WrittenRow;
  readonly input: Write['input'];
  readonly log: MemoryLog;
  readonly session: SessionRecord;
  journal: string[];
  /** Ids of its messages, which are deleted with it. */
  resources: readonly string[];
}

interface SessionRecord {
  readonly session_id: string;
  readonly owner: string | null;
  readonly runs: Sorted<RunRecord>;
  /** The runs that are not final. */
  readonly unfinished: Sorted<RunRecord>;
  readonly history: Set<string>;
  /** Ids of all resources of the session, of runs and others. */
  readonly resources: Set<string>;
  state: string | null;
  /** When the newest run was created, or the last of the deleted runs ended. */
  lastUsed: string;
  /** Whether the session was removed. Its runs are unknown at once, and deleted by sweeps. */
  removed: boolean;
}

/**
 * Keeps everything in the memory of this process, for tests and for data that may be lost. Lists look at each run that
 * they leave out, and a sweep looks at each session and key.
 */
export class MemoryStore implements Store {
  readonly outbox = new MemoryDeliveries();
  readonly #runs = new Map<string, RunRecord>();
  readonly #byId = new Sorted(byId);
  readonly #unfinished = new Sorted(byId);
  /** The unfinished runs of each owner. */
  readonly #openOf = new Map<string, Sorted<RunRecord>>();
  /** The runs that have a due time. */
  readonly #due = new Sorted<RunRecord>((a, b) => compareText(dueOf(a), dueOf(b)) || byId(a, b));
  readonly #byStatusTime = new Sorted<RunRecord>((a, b) => compareStatusTimes(a.row, b.row));
  readonly #sessions = new Map<string, SessionRecord>();
  /** Removed sessions that have data left. */
  readonly #removed: SessionRecord[] = [];
  readonly #resources = new Map<string, Resource>();
  /** By `keyName`. */
  readonly #keys = new Map<string, Key>();
  /** By `figuresName`. */
  readonly #figures = new Map<string, AgentFigures>();

  async commit(writes: readonly Write[]): Promise<Outcome[]> {
    return writes.map((write) => this.#apply(write));
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    const run = this.#find(run_id);
    return run && rowOf(run);
  }

  async input(run_id: string): Promise<RunInput | undefined> {
    return structuredClone(this.#find(run_id)?.input);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    return this.#find(run_id)?.log.after(after, limit) ?? [];
  }

  async journal(run_id: string): Promise<string[]> {
    return [...(this.#find(run_id)?.journal ?? [])];
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    return this.#keys.get(keyName({ scope, key }));
  }

  async compareAndSet(run_id: string, column: SharedColumn, before: SharedValue, after: SharedValue): Promise<boolean> {
    const run = this.#find(run_id);
    if (run?.row[column] !== before) return false;
    run.row = { ...run.row, [column]: after };
    return true;
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    const { agent_name, session_id, status, owner, parked } = filter;
    const session = session_id === undefined ? this.#all : this.#sessions.get(session_id);
    const runs = parked === undefined ? session?.runs : session?.unfinished;
    const matches = ({ row }: RunRecord): boolean =>
      (agent_name === undefined || row.agent_name === agent_name) &&
      (owner === undefined || row.owner === owner) &&
      (status === undefined || row.status === status) &&
      (parked === undefined || row.parked !== null);
    return rowsOf(
      runs?.descending(({ row }) => before !== undefined && row.run_id >= before),
      matches,
      limit,
    );
  }

  async runsByStatusTime(filter: StatusFilter, after: StatusPosition | undefined, limit: number): Promise<RunRow[]> {
    const { session_id, since = '' } = filter;
    const matches = ({ row }: RunRecord): boolean => matchesStatus(row, filter);
    if (session_id !== undefined) {
      const runs = this.#sessions.get(session_id)?.runs.ascending();
      return newestStatuses(rowsOf(runs, matches, Number.POSITIVE_INFINITY), after, limit);
    }
    const found: RunRecord[] = [];
    const isDone = ({ row }: RunRecord): boolean => after !== undefined && compareStatusTimes(row, after) >= 0;
    for (const run of this.#byStatusTime.descending(isDone)) {
      if (found.length >= limit || run.row.status_at < since) break;
      if (!run.session.removed && matches(run)) found.push(run);
    }
    return found.map(rowOf);
  }

  async countRuns(filter: StatusFilter): Promise<number> {
    const { session_id, since = '' } = filter;
    const runs =
      session_id === undefined
        ? this.#byStatusTime.ascending(({ row }) => row.status_at >= since)
        : (this.#sessions.get(session_id)?.runs.ascending() ?? []);
    let count = 0;
    for (const { row, session } of runs) if (!session.removed && matchesStatus(row, filter)) count += 1;
    return count;
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    const session = session_id === undefined ? this.#all : this.#sessions.get(session_id);
    return rowsOf(
      session?.unfinished.ascending(({ row }) => row.run_id > after),
      () => true,
      limit,
    );
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    const found: RunRecord[] = [];
    for (const run of this.#due.ascending()) {
      if (found.length >= limit || dueOf(run) > now) break;
      if (!run.session.removed) found.push(run);
    }
    return found.map(rowOf);
  }

  async count(session_id: string): Promise<number> {
    return this.#sessions.get(session_id)?.unfinished.size ?? 0;
  }

  async openRuns(owner?: string): Promise<OpenRuns[]> {
    const byStatus = new Map<RunStatus, { status: RunStatus; count: number; oldest: string }>();
    const open = owner === undefined ? this.#unfinished : this.#openOf.get(owner);
    for (const { row } of open?.ascending() ?? []) {
      const known = byStatus.get(row.status);
      if (known !== undefined) known.count += 1;
      else byStatus.set(row.status, { status: row.status, count: 1, oldest: row.run_id });
    }
    return [...byStatus.values()];
  }

  async figures(agent_names: readonly string[], owner = everyone): Promise<AgentFigures[]> {
    return agent_names.flatMap((name) => this.#figures.get(figuresName(owner, name)) ?? []);
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    const session = this.#sessions.get(session_id);
    return session && { session_id, history: [...session.history], state: session.state };
  }

  async resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]> {
    // A removed session still has its resources, and a new session may have its name.
    const has = ({ session_id, resource_id: id }: Resource) => this.#sessions.get(session_id)?.resources.has(id);
    return resource_ids.map((id) => this.#resources.get(id)).map((one) => (one && has(one) ? one : undefined));
  }

  async sessionsOf(owner: string, limit: number): Promise<string[]> {
    const own = [...this.#sessions.values()].filter((session) => session.owner === owner);
    return own.slice(0, limit).map(({ session_id }) => session_id);
  }

  async remove(run_id: string): Promise<boolean> {
    const run = this.#find(run_id);
    if (run === undefined) return true;
    if (!isFinal(run.row.status)) return false;
    for (const resource_id of run.resources) {
      this.#deleteResource(run.session, resource_id);
      run.session.history.delete(`${prefix}${resource_id}`);
    }
    this.outbox.removeOfRuns(new Set([run_id]));
    this.#deleteRun(run);
    return true;
  }

  async removeSession(session_id: string): Promise<boolean> {
    const session = this.#sessions.get(session_id);
    if (session === undefined) return true;
    if (session.unfinished.size > 0) return false;
    this.#sessions.delete(session_id);
    session.removed = true;
    this.#removed.push(session);
    return true;
  }

  async removeOwner(owner: string): Promise<void> {
    for (const name of this.#figures.keys()) if (name.startsWith(`${owner} `)) this.#figures.delete(name);
    for (const [name, { scope }] of this.#keys) if (scope.startsWith(`${owner} `)) this.#keys.delete(name);
    this.outbox.removeOfOwner(owner);
  }

  async sweep({ runs = '', sessions = '', keys, deliveries = '' }: Cutoffs): Promise<boolean> {
    if (this.#removed.length > 0) {
      this.#clearRemoved();
      return true;
    }
    const oldRuns: RunRecord[] = [];
    for (const run of this.#byStatusTime.ascending()) {
      if (run.row.status_at >= runs || oldRuns.length === sweepSize) break;
      if (run.row.finished_at !== null && run.row.finished_at < runs) oldRuns.push(run);
    }
    for (const run of oldRuns) this.#deleteRun(run);
    let deleted = oldRuns.length;
    for (const { session_id, runs, lastUsed } of this.#sessions.values()) {
      if (deleted >= sweepSize) return true;
      if (runs.size > 0 || lastUsed >= sessions) continue;
      await this.removeSession(session_id);
      deleted += 1;
    }
    for (const [name, { created_at }] of this.#keys) {
      if (deleted >= sweepSize) return true;
      if (created_at >= keys) continue;
      this.#keys.delete(name);
      deleted += 1;
    }
    this.outbox.sweep(deliveries);
    return this.#removed.length > 0;
  }

  async close(): Promise<void> {}

  /** Deletes some runs of removed sessions, and their resources after the last run of each. */
  #clearRemoved(): void {
    let left = sweepSize;
    for (let session = this.#removed.at(-1); left > 0 && session !== undefined; session = this.#removed.at(-1)) {
      const runs = firstOf(session.runs.ascending(), () => true, left);
      if (runs.length > 0) this.outbox.removeOfRuns(new Set(runs.map(({ row }) => row.run_id)));
      for (const run of runs) this.#deleteRun(run);
      left -= runs.length + 1;
      if (session.runs.size > 0) return;
      for (const resource_id of session.resources) this.#resources.delete(resource_id);
      left -= session.resources.size;
      this.#removed.pop();
    }
  }

  #find(run_id: string): RunRecord | undefined {
    const run = this.#runs.get(run_id);
    return run?.session.removed ? undefined : run;
  }

  /** All runs, as a session has them. */
  get #all(): Pick<SessionRecord, 'runs' | 'unfinished'> {
    return { runs: this.#byId, unfinished: this.#unfinished };
  }

  /** Deletes a final run. Its messages stay in the session. */
  #deleteRun(run: RunRecord): void {
    const { row, session } = run;
    this.#runs.delete(row.run_id);
    this.#byId.delete(run);
    this.#byStatusTime.delete(run);
    session.runs.delete(run);
    if (row.finished_at !== null && row.finished_at > session.lastUsed) session.lastUsed = row.finished_at;
  }

  #deleteResource(session: SessionRecord, resource_id: string): void {
    this.#resources.delete(resource_id);
    session.resources.delete(resource_id);
  }

  #apply(write: Write): Outcome {
    const refused = this.#refusal(write);
    if (refused !== undefined) return refused;
    const { row, key } = write;
    const run = this.#find(row.run_id) ?? this.#createRun(write);
    if (key !== undefined) this.#keys.set(keyName(key), key);
    if (write.grown !== true) this.#changeRow(run, row);
    run.log.append(write.lines);
    if (run.row.finished_at !== null) run.log.pack();
    for (const line of write.journal ?? []) run.journal.push(line);
    if (write.history || write.resources || write.state !== undefined) this.#updateSession(run, write);
    if (write.deliveries) this.outbox.add(write.deliveries, row);
    if (write.ended) this.#addFigures(row, write.ended);
    return 'taken';
  }

  /** Why a write must not be applied; undefined where it may be. */
  #refusal({ row, key, when, expect, input, from, grown, lines, resources, deliveries }: Write): Outcome | undefined {
    const storedKey = key && this.#keys.get(keyName(key));
    if (key !== undefined && storedKey !== undefined && storedKey.created_at >= key.fresh) return 'key_used';
    const session = this.#sessions.get(row.session_id);
    if (when !== undefined && session !== undefined && isBusy(session, row.run_id, when)) return 'session_busy';
    const run = this.#find(row.run_id);
    if (run === undefined) {
      if (expect !== 0 || input === undefined) return 'fenced';
    } else {
      if (run.log.last !== expect || run.row.epoch !== (from ?? row.epoch) || isFinal(run.row.status)) return 'fenced';
      const { targets } = run.row;
      if (grown !== true && lines.length > 0 && targets !== row.targets) return { targets };
    }
    const duplicate = resources?.find(({ resource_id, run_id }) => {
      const known = this.#resources.get(resource_id);
      return known !== undefined && (run_id === null || known.run_id !== run_id);
    });
    if (duplicate !== undefined) return { rejected: new Error(`the resource ${duplicate.resource_id} exists already`) };
    const known = deliveries?.find(({ delivery_id }) => this.outbox.has(delivery_id));
    if (known !== undefined) return { rejected: new Error(`the delivery ${known.delivery_id} exists already`) };
    return undefined;
  }

  #addFigures(row: WrittenRow, ended: NonNullable<Write['ended']>): void {
    const more = figuresOf(row, ended);
    for (const owner of row.owner === null ? [everyone] : [everyone, row.owner]) {
      const name = figuresName(owner, row.agent_name);
      this.#figures.set(name, sumOf(this.#figures.get(name), more));
    }
  }

  #createRun({ row, input }: Write): RunRecord {
    const session = this.#sessions.get(row.session_id) ?? this.#createSession(row);
    if (row.created_at > session.lastUsed) session.lastUsed = row.created_at;
    const run: RunRecord = { row, input, log: new MemoryLog(), session, journal: [], resources: [] };
    this.#runs.set(row.run_id, run);
    this.#byId.add(run);
    this.#addOpen(run);
    this.#byStatusTime.add(run);
    session.runs.add(run);
    return run;
  }

  #createSession({ session_id, owner }: WrittenRow): SessionRecord {
    const session: SessionRecord = {
      session_id,
      owner,
      runs: new Sorted(byId),
      unfinished: new Sorted(byId),
      history: new Set(),
      resources: new Set(),
      state: null,
      lastUsed: '',
      removed: false,
    };
    this.#sessions.set(session_id, session);
    return session;
  }

  /** Replaces a row, except for what only `compareAndSet` changes. */
  #changeRow(run: RunRecord, row: WrittenRow): void {
    const { targets, readers, status_at, due } = run.row;
    const isMoved = status_at !== row.status_at;
    if (isMoved) this.#byStatusTime.delete(run);
    if (due !== row.due) this.#due.delete(run);
    run.row = row.targets === targets && row.readers === readers ? row : { ...row, targets, readers };
    if (isMoved) this.#byStatusTime.add(run);
    if (due !== row.due && row.due !== null) this.#due.add(run);
    if (row.finished_at !== null) this.#deleteOpen(run);
  }

  #addOpen(run: RunRecord): void {
    const { owner, due } = run.row;
    this.#unfinished.add(run);
    run.session.unfinished.add(run);
    if (due !== null) this.#due.add(run);
    if (owner === null) return;
    const own = this.#openOf.get(owner) ?? new Sorted(byId);
    this.#openOf.set(owner, own);
    own.add(run);
  }

  #deleteOpen(run: RunRecord): void {
    const { owner } = run.row;
    this.#unfinished.delete(run);
    run.session.unfinished.delete(run);
    if (owner === null) return;
    this.#openOf.get(owner)?.delete(run);
    if (this.#openOf.get(owner)?.size === 0) this.#openOf.delete(owner);
  }

  #updateSession(run: RunRecord, { history = [], state, resources = [] }: Write): void {
    const { session } = run;
    const isOwn = ({ resource_id, run_id }: Resource) => run_id !== null && !this.#resources.has(resource_id);
    run.resources = [...run.resources, ...resources.filter(isOwn).map(({ resource_id }) => resource_id)];
    for (const resource of resources) {
      this.#resources.set(resource.resource_id, resource);
      session.resources.add(resource.resource_id);
    }
    for (const url of history) session.history.add(url);
    if (state !== undefined) this.#setState(session, state);
  }

  /** Deletes the previous state, but no resource of another session and no message, which a client may have named. */
  #setState(session: SessionRecord, state: string): void {
    const before = session.state;
    session.state = state;
    if (before === null || before === state || !before.startsWith(prefix)) return;
    const old = this.#resources.get(before.slice(prefix.length));
    if (old?.run_id === null && old.session_id === session.session_id) this.#deleteResource(session, old.resource_id);
  }
}

/** When a run is due; empty for one that has no due time. */
const dueOf = ({ row }: RunRecord): string => row.due ?? '';

function byId(a: RunRecord, b: RunRecord): number {
  return compareText(a.row.run_id, b.row.run_id);
}

const rowOf = ({ row, log }: RunRecord): RunRow => ({ ...row, last: log.last });

/** The first runs that match. */
function firstOf(
  runs: Iterable<RunRecord> | undefined,
  matches: (run: RunRecord) => boolean,
  limit: number,
): RunRecord[] {
  const found: RunRecord[] = [];
  for (const run of runs ?? []) {
    if (found.length >= limit) break;
    if (matches(run)) found.push(run);
  }
  return found;
}

/** The rows of the first runs that match, without those of removed sessions. */
const rowsOf = (...[runs, matches, limit]: Parameters<typeof firstOf>): RunRow[] =>
  firstOf(runs, (run) => !run.session.removed && matches(run), limit).map(rowOf);

/** Whether the other unfinished runs of a session violate the condition of a write. */
function isBusy({ unfinished }: SessionRecord, run_id: string, when: When): boolean {
  const first = unfinished.first?.row.run_id ?? run_id;
  const last = unfinished.last?.row.run_id ?? run_id;
  return (when !== 'last' && first < run_id) || (when !== 'first' && last > run_id);
}

const keyName = ({ scope, key }: Pick<Key, 'scope' | 'key'>): string => JSON.stringify([scope, key]);

/** Agents have no spaces, and neither have owners. */
const figuresName = (owner: string, agent_name: string): string => `${owner} ${agent_name}`;
