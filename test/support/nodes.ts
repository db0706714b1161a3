import type { Dispatcher, Execute } from '../../src/core/dispatcher.ts';
import { isFinal } from '../../src/core/run-state.ts';
import {
  type Batch,
  forwardsOnly,
  type Outcome,
  type RunNotification,
  type RunRow,
  rowAfter,
  type Store,
  type Write,
} from '../../src/core/store.ts';
import type { Agent, ServerOptions } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { faulty, newPlan } from './faulty-store.ts';
import { type Served, serveApi } from './serve.ts';

type Watcher = (moves: readonly RunNotification[] | undefined) => void;

/** A store in memory that several servers of a test share, as processes share one over a network. */
class SharedStore extends MemoryStore {
  readonly #watchers = new Set<Watcher>();
  readonly #lost = new Set<string>();
  /** Whether notifications are lost. */
  losesNotifications = false;
  #outage: Promise<void> | undefined;
  #endOutage = (): void => {};

  /** Makes the store unavailable until `back` is called: commits wait, and all other calls fail. */
  fail(): void {
    this.#outage = new Promise((resolve) => {
      this.#endOutage = resolve;
    });
  }

  /** Loses a run, as a store does that restarts without its last writes. */
  lose(run_id: string): void {
    this.#lost.add(run_id);
  }

  recover(): void {
    this.#outage = undefined;
    this.#endOutage();
    for (const watcher of this.#watchers) watcher(undefined);
  }

  override async run(run_id: string): Promise<RunRow | undefined> {
    this.#checkAvailable();
    return this.#lost.has(run_id) ? undefined : super.run(run_id);
  }

  override async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    this.#checkAvailable();
    return super.events(run_id, after, limit);
  }

  override async due(now: string, limit: number): Promise<RunRow[]> {
    this.#checkAvailable();
    return super.due(now, limit);
  }

  override async commit(writes: readonly Write[]): Promise<Outcome[]> {
    await this.#outage;
    const outcomes = await super.commit(writes);
    const notifications = writes
      .filter((_, index) => outcomes[index] === 'taken')
      .map((write) => {
        const { run_id, epoch, last, status } = rowAfter(write);
        const changed = write.grown !== true;
        return { run_id, epoch, last, final: isFinal(status), changed, forwarded: forwardsOnly(write) };
      });
    if (!this.losesNotifications) setImmediate(() => this.#notify(notifications));
    return outcomes;
  }

  async watch(watcher: Watcher): Promise<() => Promise<void>> {
    this.#watchers.add(watcher);
    return async () => void this.#watchers.delete(watcher);
  }

  #checkAvailable(): void {
    if (this.#outage !== undefined) throw new Error('connect ECONNREFUSED');
  }

  #notify(moves: readonly RunNotification[]): void {
    for (const watcher of this.#watchers) watcher(moves);
  }
}

interface Worker {
  readonly name: string;
  readonly execute: Execute;
  readonly onReleased: (run_id: string) => Promise<void>;
}

/** A queue for several processes: gives each offered run to one of them, which then has its lease. */
class SharedQueue {
  readonly #workers = new Map<string, Worker>();
  readonly #leases = new Map<string, Worker | undefined>();
  /** The process that gets the next runs; the others get none. */
  next: string | undefined;

  dispatcher(name: string): Dispatcher {
    return {
      shared: true,
      offer: async (run_ids) => this.#offer(run_ids),
      start: async (execute, onReleased) => {
        this.#workers.set(name, { name, execute, onReleased });
        this.#offer([...this.#leases].flatMap(([run_id, worker]) => (worker === undefined ? [run_id] : [])));
      },
      pause: async () => void this.#workers.delete(name),
      close: async () => {},
    };
  }

  /** Ends the leases of a process, as if it had died, and gives its runs to others. */
  expireLeases(name: string): void {
    this.#workers.delete(name);
    const lost = [...this.#leases].filter(([, worker]) => worker?.name === name).map(([run_id]) => run_id);
    for (const run_id of lost) this.#leases.delete(run_id);
    this.#offer(lost);
  }

  /** Loses the lease of a run, and gives it to no other process. */
  loseLease(run_id: string): void {
    this.#leases.delete(run_id);
  }

  isOffered(run_id: string): boolean {
    return this.#leases.has(run_id);
  }

  holder(run_id: string): string | undefined {
    return this.#leases.get(run_id)?.name;
  }

  #offer(run_ids: readonly string[]): void {
    for (const run_id of run_ids) {
      if (this.#leases.get(run_id) !== undefined) continue;
      const worker = this.next === undefined ? [...this.#workers.values()][0] : this.#workers.get(this.next);
      this.#leases.set(run_id, worker);
      if (worker !== undefined) setImmediate(() => void this.#work(worker, run_id));
    }
  }

  async #work(worker: Worker, run_id: string): Promise<void> {
    const how = await worker.execute(run_id, { rest: () => {}, wake: () => {} });
    if (this.#leases.get(run_id) !== worker) return;
    this.#leases.delete(run_id);
    if (how === 'left') await worker.onReleased(run_id);
  }
}

interface Nodes {
  readonly store: SharedStore;
  readonly queue: SharedQueue;
  node(name: string, options?: Partial<ServerOptions>): Promise<Served>;
}

/** Servers of the REST API that share a store and its runs. */
export function nodes(agents: Agent[]): Nodes {
  const store = new SharedStore();
  const queue = new SharedQueue();
  const node = (name: string, options: Partial<ServerOptions> = {}): Promise<Served> =>
    serveApi(agents, { store, dispatcher: queue.dispatcher(name), ...options });
  return { store, queue, node };
}

/** The options of a node that hears of nothing that other nodes write, as one that hangs. */
export const deaf = (store: Store) => ({
  store: faulty(store, { ...newPlan(), drops: () => true }),
  limits: { pollInterval: 86_400_000 },
});
