import { needsExecution } from '../../src/core/ports/run-claims.ts';
import {
  type Batch,
  type Outcome,
  type RunNotification,
  type RunRow,
  rowAfter,
  type Watch,
  type Write,
} from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import type { Dispatcher, Execute } from '../../src/engine/dispatch/dispatcher.ts';
import type { Agent, ServerOptions } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { faulty, newPlan } from './faulty-store.ts';
import { FollowedTopics, type Told, toldOf } from './followed-topics.ts';
import { type Served, serveApi } from './serve.ts';

type Watcher = (moves: readonly RunNotification[] | undefined) => void;

/** A store in memory that several servers of a test share, as processes share one over a network. */
export class SharedStore extends MemoryStore {
  readonly #watchers = new Map<Watcher, FollowedTopics>();
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
    for (const watcher of this.#watchers.keys()) watcher(undefined);
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
    const told = writes
      .filter((_, index) => outcomes[index] === 'taken')
      .map((write) => toldOf(write, rowAfter(write)));
    if (!this.losesNotifications) setImmediate(() => this.#notify(told));
    return outcomes;
  }

  async watch(watcher: Watcher): Promise<Watch> {
    const followed = new FollowedTopics();
    this.#watchers.set(watcher, followed);
    return {
      follow: async (topic) => followed.follow(topic),
      unfollow: (topic) => followed.unfollow(topic),
      close: async () => void this.#watchers.delete(watcher),
    };
  }

  #checkAvailable(): void {
    if (this.#outage !== undefined) throw new Error('connect ECONNREFUSED');
  }

  #notify(told: readonly Told[]): void {
    for (const [watcher, followed] of this.#watchers) {
      const heard = followed.heardOf(told);
      if (heard.length > 0) watcher(heard);
    }
  }
}

interface Worker {
  readonly name: string;
  readonly execute: Execute;
}

/** Not that of a test with a clock of its own. */
const later = setTimeout;

/** Gives each offered run to one of several processes, which keeps it until it has left. */
class SharedQueue {
  readonly #store: SharedStore;
  readonly #workers = new Map<string, Worker>();
  readonly #holders = new Map<string, Worker | undefined>();
  /** The process that gets the next runs; the others get none. */
  next: string | undefined;

  constructor(store: SharedStore) {
    this.#store = store;
  }

  dispatcher(name: string): Dispatcher {
    return {
      shared: true,
      node: name,
      leasedSince: () => 0,
      whenRenewed: async () => {},
      start: async (execute) => {
        this.#workers.set(name, { name, execute });
        const open = await this.#store.unfinished(undefined, '', 10_000);
        this.#offer(open.filter(needsExecution).map(({ run_id }) => run_id));
      },
      reserve: () => undefined,
      offer: (run_ids) => this.#offer(run_ids),
      onWaiting: () => {},
      onSlotFree: () => {},
      pause: async () => void this.#workers.delete(name),
      close: async () => {},
    };
  }

  /** Takes all runs from a process, as if it had died, and gives them to others. */
  expireLeases(name: string): void {
    this.#workers.delete(name);
    const lost = [...this.#holders].filter(([, worker]) => worker?.name === name).map(([run_id]) => run_id);
    for (const run_id of lost) this.#holders.delete(run_id);
    this.#offer(lost);
  }

  /** Takes a run from its process, and gives it to no other one. */
  loseLease(run_id: string): void {
    this.#holders.delete(run_id);
  }

  isHeld(run_id: string): boolean {
    return this.#holders.has(run_id);
  }

  /** Takes a run from its process, and gives it to the next one, which may be the same. */
  giveAgain(run_id: string): void {
    this.#holders.delete(run_id);
    this.#offer([run_id]);
  }

  holder(run_id: string): string | undefined {
    return this.#holders.get(run_id)?.name;
  }

  #offer(run_ids: readonly string[]): void {
    for (const run_id of run_ids) {
      if (this.#holders.get(run_id) !== undefined) continue;
      const worker = this.next === undefined ? [...this.#workers.values()][0] : this.#workers.get(this.next);
      this.#holders.set(run_id, worker);
      if (worker !== undefined) setImmediate(() => void this.#work(worker, run_id));
    }
  }

  async #work(worker: Worker, run_id: string): Promise<void> {
    await worker.execute(run_id);
    if (this.#holders.get(run_id) !== worker) return;
    this.#holders.delete(run_id);
    const row = await this.#store.run(run_id);
    // As nodes look again and again for what waits.
    if (row !== undefined && needsExecution(row)) later(() => this.#offer([run_id]), 20).unref();
  }
}

interface Nodes {
  readonly store: SharedStore;
  readonly queue: SharedQueue;
  node(name: string, options?: Partial<ServerOptions>): Promise<Served>;
}

/** Servers of the REST API that share a store and its runs. */
export function nodes(agents: Agent[], store = new SharedStore()): Nodes {
  const queue = new SharedQueue(store);
  const node = (name: string, options: Partial<ServerOptions> = {}): Promise<Served> =>
    serveApi(agents, { store, dispatcher: queue.dispatcher(name), ...options });
  return { store, queue, node };
}

/** Two such servers, of which `b` executes the runs. */
export async function pairOf(agents: Agent[], options: Partial<ServerOptions> = {}) {
  const { node, queue, store } = nodes(agents);
  const [a, b] = [await node('a', options), await node('b', options)];
  queue.next = 'b';
  return { a, b, node, queue, store };
}

/** The options of a node that hears of nothing that other nodes write, as one that hangs. */
export const deaf = (store: Store) => ({
  store: faulty(store, { ...newPlan(), drops: () => true }),
  limits: { pollInterval: 86_400_000 },
});
