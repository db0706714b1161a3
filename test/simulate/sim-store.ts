import type { RunClaims } from '../../src/core/ports/run-claims.ts';
import {
  lastAfter,
  type Outcome,
  type RunNotification,
  type RunRow,
  rowAfter,
  type Write,
} from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { FollowedTopics, type Told, toldOf } from '../support/followed-topics.ts';
import { MemoryClaims } from '../support/memory-claims.ts';
import type { Clock, Owner } from './clock.ts';
import type { Conditions } from './faults.ts';
import type { Random } from './random.ts';

type Watcher = (notifications: readonly RunNotification[] | undefined) => void;

/** Milliseconds that a message takes without a fault. */
const latency = 1;
/** Milliseconds until a subscription that was refused is tried again. */
const retryPause = 200;
/** A text that the store cannot keep: it rejects a write with this text. */
export const unstorable = 'UNSTORABLE';

/** The store's error when it refuses a request. */
export const refusal = 'the simulated store refuses';

/** Observes all writes of the store's server, in order. */
export interface Audit {
  /** Before a commit is applied. */
  committing(node: Owner, writes: readonly Write[]): void;
  taken(node: Owner, write: Write, before: RunRow | undefined): void;
  /** A node learns that its write was not taken. */
  refused(node: Owner, write: Write, outcome: Outcome): void;
  removed(what: string): void;
}

/** Deliberate defects of the simulated store, which the invariants have to notice; see `flaws.ts`. */
export type StoreFlaw =
  | 'epochs-ignored'
  | 'conditions-ignored'
  | 'keys-ignored'
  | 'journal-lost'
  | 'refused-but-taken'
  | 'leases-ignored'
  | 'lines-lost';

/** The server of the simulated store: its writes are durable, whatever happens to the nodes. */
export class StoreServer {
  readonly inner = new MemoryStore();
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #conditions: Conditions;
  readonly #watchers = new Map<Watcher, { readonly node: Owner; readonly followed: FollowedTopics }>();
  readonly #flaw: StoreFlaw | undefined;
  audit: Audit | undefined;
  /** Every line that was taken, by run; kept here because a run may be removed. */
  readonly logs = new Map<string, string[]>();
  readonly rows = new Map<string, RunRow>();
  readonly #claims: MemoryClaims;
  /** What to call when the server takes the reads of rows that begin now. */
  #onRead: (() => void) | undefined;

  readonly #isFile: boolean;

  /** With `isFile`, the store is a part of its one node: when that dies or pauses, calls in progress stop. */
  constructor(clock: Clock, random: Random, conditions: Conditions, isFile: boolean, flaw?: StoreFlaw) {
    this.#isFile = isFile;
    this.#clock = clock;
    this.#random = random;
    this.#conditions = conditions;
    this.#flaw = flaw;
    this.#claims = new MemoryClaims(
      () => this.rows.values(),
      () => (flaw === 'leases-ignored' ? 0 : clock.now),
    );
  }

  /** A node's handle of the store. */
  handle(node: Owner): Store {
    const ask = <T>(work: () => Promise<T>): Promise<T> => this.#ask(node, work);
    const { inner } = this;
    return {
      commit: (writes) => this.#commit(node, writes.map(copy)),
      run: (id) => {
        const onRead = this.#onRead;
        return ask(() => {
          onRead?.();
          return inner.run(id);
        });
      },
      input: (id) => ask(() => inner.input(id)),
      events: (id, after, limit) => ask(() => inner.events(id, after, Math.min(limit, 7))),
      journal: (id) => ask(() => (this.#flaw === 'journal-lost' ? Promise.resolve([]) : inner.journal(id))),
      runs: (filter, before, limit) => ask(() => inner.runs(filter, before, limit)),
      runsByStatusTime: (filter, after, limit) => ask(() => inner.runsByStatusTime(filter, after, limit)),
      countRuns: (filter) => ask(() => inner.countRuns(filter)),
      compareAndSet: (...change) => ask(() => inner.compareAndSet(...change)),
      unfinished: (session, after, limit) => ask(() => inner.unfinished(session, after, limit)),
      due: (now, limit) => ask(() => inner.due(now, limit)),
      count: (session) => ask(() => inner.count(session)),
      openRuns: (owner) => ask(() => inner.openRuns(owner)),
      key: (scope, key) => ask(() => inner.key(scope, key)),
      session: (id) => ask(() => inner.session(id)),
      resources: (ids) => ask(() => inner.resources(ids)),
      figures: (names, owner) => ask(() => inner.figures(names, owner)),
      outbox: {
        claimDeliveries: (now, until, limit) => ask(() => inner.outbox.claimDeliveries(now, until, limit)),
        finishDelivery: (claim, result) => ask(() => inner.outbox.finishDelivery(claim, result)),
        delivery: (id) => ask(() => inner.outbox.delivery(id)),
        deliveries: (filter, before, limit) => ask(() => inner.outbox.deliveries(filter, before, limit)),
        pendingDeliveries: (limit) => ask(() => inner.outbox.pendingDeliveries(limit)),
        urlFailures: (owner, url) => ask(() => inner.outbox.urlFailures(owner, url)),
        replayDelivery: (id, now) => ask(() => inner.outbox.replayDelivery(id, now)),
      },
      sessionsOf: (owner, limit) => ask(() => inner.sessionsOf(owner, limit)),
      remove: (id) =>
        ask(() =>
          this.#remove(
            `run ${id}`,
            () => inner.remove(id),
            () => this.rows.delete(id),
          ),
        ),
      removeSession: (id) =>
        ask(() =>
          this.#remove(
            `session ${id}`,
            () => inner.removeSession(id),
            () => this.#forget(id),
          ),
        ),
      removeOwner: (owner) => ask(() => inner.removeOwner(owner)),
      sweep: (before) => ask(() => inner.sweep(before)),
      watch: async (watcher) => {
        const followed = new FollowedTopics();
        let asked: Promise<unknown> = Promise.resolve();
        this.#watchers.set(watcher, { node, followed });
        return {
          follow: (topic) => {
            const following = this.#subscribe(node, () => followed.follow(topic));
            asked = Promise.all([asked, following]);
            return following;
          },
          unfollow: (topic) => void asked.then(() => followed.unfollow(topic)),
          close: async () => void this.#watchers.delete(watcher),
        };
      },
      close: async () => {},
      ...(!this.#isFile && { claims: this.#claimsOf(node) }),
    };
  }

  /** The name that a node has chosen for itself may be any; its requests are known by its connection. */
  #claimsOf(node: Owner): RunClaims {
    const claims = this.#claims;
    const ask = <T>(work: () => Promise<T>): Promise<T> =>
      this.#ask(node, work, () => this.#conditions.left('claims-late', node));
    return {
      renewLease: (name, milliseconds) =>
        ask(async () => {
          return !this.#conditions.has('unleased', node) && claims.renewLease(name, milliseconds);
        }),
      endLease: (name) => ask(() => claims.endLease(name)),
      claimRuns: (name, agents, limit) => ask(() => claims.claimRuns(name, agents, limit)),
      takeRuns: (name, run_ids) => ask(() => claims.takeRuns(name, run_ids)),
      heldRuns: (name, after, limit) => ask(() => claims.heldRuns(name, after, limit)),
      freeRuns: (name, run_ids) => ask(() => claims.freeRuns(name, run_ids)),
    };
  }

  /** Calls back when the server takes the reads of rows with which this work begins, before it waits for anything. */
  observeReads<T>(onRead: () => void, work: () => Promise<T>): Promise<T> {
    this.#onRead = onRead;
    try {
      return work();
    } finally {
      this.#onRead = undefined;
    }
  }

  /** A node that was deaf learns that it may have missed notifications. */
  reconnected(node: Owner): void {
    for (const [watcher, one] of this.#watchers)
      if (one.node === node) this.#clock.at(node, latency, () => watcher(undefined));
  }

  async #remove(what: string, remove: () => Promise<boolean>, forget: () => void): Promise<boolean> {
    const removed = await remove();
    if (removed) {
      this.audit?.removed(what);
      forget();
    }
    return removed;
  }

  #forget(session_id: string): void {
    for (const [run_id, row] of this.rows) if (row.session_id === session_id) this.rows.delete(run_id);
  }

  #delay(node: Owner): number {
    const usual = latency * (0.5 + this.#random.next()) * (this.#random.chance(0.1) ? this.#random.between(2, 20) : 1);
    // Sometimes a message takes long without a fault.
    if (this.#random.chance(0.005)) return usual + this.#random.between(100, 1_500);
    return this.#conditions.has('slow', node) ? usual * 100 : usual;
  }

  #isRefused(node: Owner): boolean {
    return this.#conditions.has('refusing', node) || (this.#conditions.has('flaky', node) && this.#random.chance(0.5));
  }

  #ask<T>(node: Owner, work: () => Promise<T>, answerAfter = () => 0): Promise<T> {
    const owner = this.#isFile ? node : 'world';
    return new Promise((resolve, reject) => {
      const arrive = (): void => {
        const stalled = this.#conditions.left('stalled', node);
        if (stalled > 0) {
          this.#clock.at(owner, stalled + this.#random.next(), arrive);
          return;
        }
        const answer = (settle: () => void): void =>
          void this.#clock.at(node, this.#delay(node) + answerAfter(), settle);
        const refuse = (): void => answer(() => reject(new Error(refusal)));
        if (!this.#isRefused(node)) work().then((value) => answer(() => resolve(value)), reject);
        else if (this.#flaw === 'refused-but-taken') void work().then(refuse);
        else refuse();
      };
      this.#clock.at(owner, this.#delay(node), arrive);
    });
  }

  async #commit(node: Owner, writes: readonly Write[]): Promise<Outcome[]> {
    const answerAfter = (): number => this.#conditions.left('answers-late', node);
    const outcomes = await this.#ask(node, () => this.#apply(node, writes), answerAfter);
    // A node hears why the first write of a run was refused; those after it had no place any more.
    const refused = new Set<string>();
    for (const [index, write] of writes.entries()) {
      const outcome = outcomes[index] ?? 'fenced';
      if (outcome === 'taken' || refused.has(write.row.run_id)) continue;
      refused.add(write.row.run_id);
      this.audit?.refused(node, write, outcome);
    }
    return outcomes;
  }

  async #apply(node: Owner, writes: readonly Write[]): Promise<Outcome[]> {
    this.audit?.committing(node, writes);
    const outcomes: Outcome[] = [];
    const told: Told[] = [];
    for (const write of writes) {
      const before = this.rows.get(write.row.run_id);
      const outcome = await this.#commitOne(write);
      outcomes.push(outcome);
      if (outcome !== 'taken') continue;
      // A write that only adds to a run changes nothing else in the row.
      const row: RunRow = write.grown && before ? { ...before, last: lastAfter(write) } : rowAfter(write);
      const { run_id } = row;
      this.rows.set(run_id, row);
      const log = this.logs.get(run_id) ?? [];
      this.logs.set(run_id, log);
      log.push(...write.lines);
      this.#claims.onTaken(write);
      this.audit?.taken(node, write, before);
      told.push(toldOf(write, row));
    }
    for (const [watcher, one] of this.#watchers) {
      const heard = one.followed.heardOf(told);
      if (heard.length > 0) this.#notify(watcher, one.node, heard);
    }
    return outcomes;
  }

  async #commitOne(write: Write): Promise<Outcome> {
    if (write.lines.some((line) => line.includes(unstorable)))
      return { rejected: new Error('the text cannot be kept') };
    const { when, key, ...rest } = write;
    const flawed: Write = {
      ...rest,
      ...(when !== undefined && this.#flaw !== 'conditions-ignored' && { when }),
      ...(key !== undefined && this.#flaw !== 'keys-ignored' && { key }),
      ...(this.#flaw === 'epochs-ignored' && {
        from: (await this.inner.run(write.row.run_id))?.epoch ?? write.row.epoch,
      }),
    };
    const [outcome = 'fenced'] = await this.inner.commit([flawed]);
    return outcome;
  }

  /** A store's subscription tries again until the server takes it. */
  async #subscribe(node: Owner, follow: () => void): Promise<void> {
    for (;;) {
      try {
        return await this.#ask(node, async () => follow());
      } catch {
        await new Promise<void>((resolve) => void this.#clock.at(node, retryPause, resolve));
      }
    }
  }

  #notify(watcher: Watcher, node: Owner, notifications: readonly RunNotification[]): void {
    if (this.#conditions.has('deaf', node) || this.#conditions.has('deaf-told', node)) return;
    const deliver = (): void => {
      this.#clock.at(node, this.#delay(node), () => {
        if (this.#watchers.has(watcher)) watcher(notifications);
      });
    };
    if (!this.#conditions.has('noisy', node)) deliver();
    else
      for (let times = this.#random.below(3); times > 0; times -= 1)
        this.#clock.at('world', this.#random.between(0, 3_000), deliver);
  }
}

/** A copy, as a network would make: the engine may change its own objects later. */
const copy = (write: Write): Write => ({
  ...write,
  row: { ...write.row },
  lines: [...write.lines],
  ...(write.journal && { journal: [...write.journal] }),
  ...(write.resources && { resources: [...write.resources] }),
  ...(write.history && { history: [...write.history] }),
  ...(write.deliveries && { deliveries: [...write.deliveries] }),
});
