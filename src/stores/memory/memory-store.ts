import { append } from '../../core/collections.ts';
import type { Delivery, DeliveryFilter, DeliveryResult, PendingDeliveries, UrlFailures } from '../../core/outbox.ts';
import { sessionIdOf } from '../../core/principal.ts';
import type { RunInput } from '../../core/request.ts';
import { isFinal } from '../../core/run-state.ts';
import type {
  AgentFigures,
  Batch,
  Key,
  OpenRuns,
  Outcome,
  Resource,
  Retention,
  RunFilter,
  RunRow,
  SessionRow,
  StatusFilter,
  StatusPosition,
  Store,
  Write,
  WrittenRow,
} from '../../core/store.ts';
import type { RunStatus } from '../../schema/run.ts';
import { figuresOf, sumOf } from '../figures.ts';
import { Arena } from './arena.ts';
import { ById } from './by-id.ts';
import { MemoryDeliveries } from './deliveries.ts';
import { MemoryKeys } from './keys.ts';
import { LatePacking } from './late-packing.ts';
import { MemoryLog } from './log.ts';
import { Owners } from './owners.ts';
import { byId, compareText, first, firstRows, type RunRecord, rowOf, SessionRecord, withTargets } from './records.ts';
import { Sorted } from './sorted.ts';
import { StatusTimes } from './status-times.ts';

/** Runs, resources, sessions and keys that one sweep deletes, in less than a millisecond. */
const sweepSize = 200;

/** Keeps everything in the memory of this process, for tests and for data that may be lost. */
export class MemoryStore implements Store {
  readonly #runs = new ById<RunRecord>();
  readonly #byId = new Sorted(byId);
  readonly #unfinished = new Sorted(byId);
  readonly #due = new Sorted<RunRecord>((a, b) => compareText(a.row.due ?? '', b.row.due ?? '') || byId(a, b));
  readonly #ended = new Sorted<RunRecord>(
    (a, b) => compareText(a.row.finished_at ?? '', b.row.finished_at ?? '') || byId(a, b),
  );
  readonly #statusTimes = new StatusTimes(this.#runs);
  /** Their keys begin with their owners. */
  readonly #sessions = new ById<SessionRecord>(sessionIdOf);
  /** Sessions without runs. */
  readonly #idle = new Sorted<SessionRecord>(
    (a, b) => compareText(a.lastUsed, b.lastUsed) || compareText(a.session_id, b.session_id),
  );
  #removed: SessionRecord[] = [];
  readonly #resources = new ById<Resource>();
  readonly #keys = new MemoryKeys();
  readonly #figures = new Map<string, AgentFigures>();
  readonly #owners = new Owners();
  readonly #deliveries = new MemoryDeliveries();
  readonly #arena = new Arena();
  readonly #latePacking = new LatePacking();

  async commit(writes: readonly Write[]): Promise<Outcome[]> {
    return writes.map((write) => this.#apply(write));
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    const run = this.#find(run_id);
    return run && rowOf(run);
  }

  async input(run_id: string): Promise<RunInput | undefined> {
    const input = this.#find(run_id)?.input;
    return input === undefined ? undefined : structuredClone(input);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    return this.#find(run_id)?.log.after(after, limit) ?? [];
  }

  async journal(run_id: string): Promise<string[]> {
    return [...(this.#find(run_id)?.journal ?? [])];
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    const { agent_name, session_id, status, owner, parked } = filter;
    const ofOwner = owner === undefined ? this.#byId : this.#owners.get(owner)?.runs;
    const ofSession = session_id === undefined ? ofOwner : this.#sessions.get(session_id)?.runs;
    const runs = parked === undefined ? ofSession : this.#unfinished;
    const found: RunRow[] = [];
    for (const run of runs?.descending(({ row }) => before !== undefined && row.run_id >= before) ?? []) {
      const { row, session } = run;
      if (found.length === limit) break;
      if (session.removed || (agent_name !== undefined && row.agent_name !== agent_name)) continue;
      if (owner !== undefined && row.owner !== owner) continue;
      if (parked !== undefined && (row.parked === null || (session_id ?? row.session_id) !== row.session_id)) continue;
      if (status === undefined || row.status === status) found.push(rowOf(run));
    }
    return found;
  }

  async runsByStatusTime(filter: StatusFilter, after: StatusPosition | undefined, limit: number): Promise<RunRow[]> {
    return this.#statusTimes.page(filter, this.#sessions.get(filter.session_id ?? ''), after, limit);
  }

  async countRuns(filter: StatusFilter): Promise<number> {
    return this.#statusTimes.count(filter, this.#sessions.get(filter.session_id ?? ''), this.#removed);
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    const runs = session_id === undefined ? this.#unfinished : this.#sessions.get(session_id)?.unfinished;
    return firstRows(
      runs?.ascending(({ row }) => row.run_id > after),
      limit,
    );
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    return firstRows(this.#due.ascending(), limit, ({ row }) => (row.due ?? '') <= now);
  }

  async count(session_id: string): Promise<number> {
    return this.#sessions.get(session_id)?.unfinished?.size ?? 0;
  }

  async openRuns(owner?: string): Promise<OpenRuns[]> {
    const byStatus = new Map<RunStatus, { status: RunStatus; count: number; oldest: string }>();
    const unfinished = owner === undefined ? this.#unfinished : this.#owners.get(owner)?.unfinished;
    for (const { row } of unfinished?.ascending() ?? []) {
      const known = byStatus.get(row.status);
      if (known !== undefined) known.count += 1;
      else byStatus.set(row.status, { status: row.status, count: 1, oldest: row.run_id });
    }
    return [...byStatus.values()];
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    return this.#keys.find({ scope, key });
  }

  async setTargets(run_id: string, before: string | null, targets: string | null): Promise<boolean> {
    const run = this.#find(run_id);
    if (run?.row.targets !== before) return false;
    run.row = { ...run.row, targets };
    return true;
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    const session = this.#sessions.get(session_id);
    return session && { session_id, history: session.history.all(), state: session.state };
  }

  async resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]> {
    // Sweeps delete those of a removed session, whose name a new session may have.
    const has = ({ session_id, resource_id: id }: Resource) => this.#sessions.get(session_id)?.resources.has(id);
    return resource_ids.map((id) => this.#resources.get(id)).map((one) => (one && has(one) ? one : undefined));
  }

  async figures(agent_names: readonly string[], owner?: string): Promise<AgentFigures[]> {
    const figures = owner === undefined ? this.#figures : this.#owners.get(owner)?.figures;
    return agent_names.flatMap((name) => figures?.get(name) ?? []);
  }

  async sessionsOf(owner: string, limit: number): Promise<string[]> {
    return first(this.#owners.get(owner)?.sessions.values(), limit).map(({ session_id }) => session_id);
  }

  async claimDeliveries(now: string, until: string, limit: number): Promise<Delivery[]> {
    return this.#deliveries.claimDeliveries(now, until, limit);
  }

  async finishDelivery(claim: Delivery, result: DeliveryResult): Promise<boolean> {
    return this.#deliveries.finishDelivery(claim, result);
  }

  async delivery(delivery_id: string): Promise<Delivery | undefined> {
    return this.#deliveries.delivery(delivery_id);
  }

  async deliveries(filter: DeliveryFilter, before: string | undefined, limit: number): Promise<Delivery[]> {
    return this.#deliveries.deliveries(filter, before, limit);
  }

  async pendingDeliveries(limit: number): Promise<PendingDeliveries> {
    return this.#deliveries.pendingDeliveries(limit);
  }

  async urlFailures(owner: string | null, url: string): Promise<UrlFailures | undefined> {
    return this.#deliveries.urlFailures(owner, url);
  }

  async replayDelivery(delivery_id: string, now: string): Promise<boolean> {
    return this.#deliveries.replayDelivery(delivery_id, now);
  }

  async remove(run_id: string): Promise<boolean> {
    const run = this.#find(run_id);
    if (run === undefined) return true;
    if (!isFinal(run.row.status)) return false;
    for (const resource_id of run.resources) {
      this.#deleteResource(run.session, resource_id);
      run.session.history.delete(`${prefix}${resource_id}`);
    }
    this.#deliveries.removeOfRun(run_id);
    this.#deleteRun(run);
    return true;
  }

  async removeSession(session_id: string): Promise<boolean> {
    const session = this.#sessions.get(session_id);
    if (session === undefined) return true;
    if (session.unfinished !== undefined) return false;
    this.#idle.delete(session);
    this.#sessions.delete(session_id);
    this.#owners.delete(session.owner, ({ sessions }) => sessions.delete(session_id));
    session.removed = true;
    this.#removed = append(this.#removed, session);
    return true;
  }

  async removeOwner(owner: string): Promise<void> {
    this.#owners.delete(owner, ({ figures }) => figures.clear());
    this.#deliveries.removeOfOwner(owner);
    this.#keys.removeOfOwner(owner);
  }

  async sweep(before: Retention): Promise<boolean> {
    let left = sweepSize;
    const { runs = '', sessions = '', keys } = before;
    for (let old = this.#ended.first; left > 0 && old !== undefined; old = this.#ended.first, left -= 1) {
      if ((old.row.finished_at ?? '') >= runs) break;
      this.#deleteRun(old);
    }
    for (let old = this.#idle.first; left > 0 && old !== undefined; old = this.#idle.first, left -= 1) {
      if (old.lastUsed >= sessions) break;
      await this.removeSession(old.session_id);
    }
    left = this.#keys.sweep(keys, left);
    if (before.deliveries !== undefined) left = this.#deliveries.sweep(before.deliveries, left);
    return this.#clearRemoved(left) === 0;
  }

  async close(): Promise<void> {}

  /** Deletes up to `count` runs and resources of removed sessions. Returns how many more it could have deleted. */
  #clearRemoved(count: number): number {
    let left = count;
    for (let session = this.#removed.at(-1); left > 0 && session !== undefined; session = this.#removed.at(-1)) {
      for (let run = session.runs.first; left > 0 && run !== undefined; run = session.runs.first, left -= 1) {
        this.#deliveries.removeOfRun(run.row.run_id);
        this.#deleteRun(run);
      }
      const resources = session.resources.removeFirst(left);
      for (const resource_id of resources) this.#resources.delete(resource_id);
      left -= resources.length;
      if (left > 0) this.#removed.pop();
    }
    return left;
  }

  #find(run_id: string): RunRecord | undefined {
    const run = this.#runs.get(run_id);
    return run?.session.removed ? undefined : run;
  }

  /** Deletes a final run. Its messages stay in the session. */
  #deleteRun(run: RunRecord): void {
    const { row, session } = run;
    this.#runs.delete(row.run_id);
    this.#byId.delete(run);
    this.#statusTimes.delete(run);
    this.#ended.delete(run);
    session.runs.delete(run);
    this.#owners.delete(row.owner, ({ runs }) => runs.delete(run));
    if (row.finished_at !== null && row.finished_at > session.lastUsed) session.lastUsed = row.finished_at;
    if (session.runs.size === 0 && !session.removed) this.#idle.add(session);
  }

  #deleteResource(session: SessionRecord, resource_id: string): void {
    this.#resources.delete(resource_id);
    session.resources.delete(resource_id);
  }

  #apply(write: Write): Outcome {
    const { row, key } = write;
    const storedKey = key && this.#keys.find(key);
    if (key !== undefined && storedKey !== undefined && storedKey.created_at >= key.fresh) return 'key_used';
    if (write.when !== undefined && this.#sessions.get(row.session_id)?.isBusy(row.run_id, write.when))
      return 'session_busy';
    let run = this.#find(row.run_id);
    const isNew = write.expect === 0 && write.input !== undefined && run === undefined;
    if (!isNew) {
      if (run === undefined || run.log.last !== write.expect) return 'fenced';
      if (run.row.epoch !== (write.from ?? row.epoch) || isFinal(run.row.status)) return 'fenced';
      const { targets } = run.row;
      if (write.grown !== true && write.lines.length > 0 && targets !== row.targets) return { targets };
    }
    const duplicate = write.resources?.find(({ resource_id, run_id }) => {
      const known = this.#resources.get(resource_id);
      return known !== undefined && (run_id === null || known.run_id !== run_id);
    });
    if (duplicate !== undefined) return { rejected: new Error(`the resource ${duplicate.resource_id} exists already`) };
    const known = write.deliveries?.find(({ delivery_id }) => this.#deliveries.has(delivery_id));
    if (known !== undefined) return { rejected: new Error(`the delivery ${known.delivery_id} exists already`) };
    run ??= this.#createRun(write);
    if (key !== undefined) this.#keys.put(key);
    if (write.grown !== true) this.#changeRow(run, row);
    run.log.append(write);
    if (run.row.finished_at === null) run.log.packMany();
    else this.#latePacking.add(run.log);
    for (const line of write.journal ?? []) run.journal = append(run.journal, line);
    if (write.history || write.resources || write.state !== undefined) this.#updateSession(run, write);
    if (write.deliveries) this.#deliveries.add(write.deliveries, row);
    if (write.ended) this.#addFigures(row, write.ended);
    return 'taken';
  }

  #addFigures(row: WrittenRow, ended: NonNullable<Write['ended']>): void {
    const more = figuresOf(row, ended);
    const add = (figures: Map<string, AgentFigures>): void =>
      void figures.set(row.agent_name, sumOf(figures.get(row.agent_name), more));
    add(this.#figures);
    this.#owners.add(row.owner, ({ figures }) => add(figures));
  }

  #createRun({ row, input }: Write): RunRecord {
    const { session_id, run_id, created_at } = row;
    const known = this.#sessions.get(session_id);
    if (known?.runs.size === 0) this.#idle.delete(known);
    const session = known ?? this.#createSession(row);
    if (created_at > session.lastUsed) session.lastUsed = created_at;
    const isNew = row.due === null && row.finished_at === null;
    const before = isNew ? row : { ...row, due: null, finished_at: null };
    const run: RunRecord = { row: before, input, log: new MemoryLog(this.#arena), session, journal: [], resources: [] };
    this.#runs.set(run_id, run);
    this.#byId.add(run);
    this.#statusTimes.add(run);
    this.#unfinished.add(run);
    session.runs.add(run);
    this.#owners.add(row.owner, ({ runs, unfinished }) => {
      runs.add(run);
      unfinished.add(run);
    });
    session.unfinished ??= new Sorted(byId);
    session.unfinished.add(run);
    return run;
  }

  #createSession(row: WrittenRow): SessionRecord {
    const session = new SessionRecord(row);
    this.#sessions.set(row.session_id, session);
    this.#owners.add(row.owner, ({ sessions }) => sessions.set(row.session_id, session));
    return session;
  }

  /** Replaces a row of which more than `last` changes, and updates the lists that are sorted by its values. */
  #changeRow(run: RunRecord, row: WrittenRow): void {
    if (run.row.due !== row.due && run.row.due !== null) this.#due.delete(run);
    const isDue = run.row.due !== row.due && row.due !== null;
    const isMoved = run.row.status !== row.status || run.row.status_at !== row.status_at;
    if (isMoved) this.#statusTimes.delete(run);
    run.row = withTargets(row, run.row);
    if (isMoved) this.#statusTimes.add(run);
    if (isDue) this.#due.add(run);
    if (row.finished_at === null) return;
    this.#ended.add(run);
    this.#unfinished.delete(run);
    this.#owners.get(row.owner ?? '')?.unfinished.delete(run);
    const { session } = run;
    session.unfinished?.delete(run);
    if (session.unfinished?.size === 0) session.unfinished = undefined;
  }

  #updateSession(run: RunRecord, { history, state, resources = [] }: Write): void {
    const { session } = run;
    const own = resources.filter(({ resource_id, run_id }) => run_id !== null && !this.#resources.has(resource_id));
    for (const resource of resources) {
      this.#resources.set(resource.resource_id, resource);
      session.resources.add(resource.resource_id);
    }
    const ids = own.map(({ resource_id }) => resource_id);
    run.resources = run.resources.length === 0 ? ids : [...run.resources, ...ids];
    for (const url of history ?? []) session.history.add(url);
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

const prefix = '/resources/';
