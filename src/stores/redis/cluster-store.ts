import { allOf } from '../../core/all-of.ts';
import type { RunClaims } from '../../core/ports/run-claims.ts';
import type { AgentFigures, OpenRuns, RunFilter, StatusFilter, StatusPosition } from '../../core/ports/run-lists.ts';
import type {
  Batch,
  Key,
  Outcome,
  RunNotification,
  RunRow,
  SharedColumn,
  SharedValue,
  Watch,
  Write,
} from '../../core/ports/run-store.ts';
import type { Resource, SessionRow } from '../../core/ports/session-store.ts';
import type { Cutoffs, Partitions, Store } from '../../core/ports/store.ts';
import type { RunInput } from '../../core/request.ts';
import { openStatuses } from '../../core/run-state.ts';
import { retry, TooLate, within } from '../../core/timing.ts';
import { sumOf } from '../figures.ts';
import { SharedSubscription } from '../remote/shared-subscription.ts';
import { newestStatuses } from '../status-times.ts';
import { type ClusterAddress, reasonOf } from '../store-url.ts';
import { ClusterClaims } from './cluster-claims.ts';
import { ClusterDeliveries } from './cluster-deliveries.ts';
import { clusterParts, clusterPrefixes } from './cluster-prefixes.ts';
import { closeClient, connectCluster, orDisconnect, type RedisClient } from './connection.ts';
import { isRedisUnavailable } from './errors.ts';
import { idOfKey } from './key-pointers.ts';
import { channelNames, durabilityWarnings, maxTextBytes } from './layout.ts';
import { newestFirst, sum } from './merge.ts';
import { Parts } from './parts.ts';
import { RedisStore } from './redis-store.ts';
import { subscribe } from './subscription.ts';

/**
 * Milliseconds for which an open waits for a cluster that is down: a replica may be about to take over. With Redis's default
 * `cluster-node-timeout`, its primary counts as failed after 15 s, and the vote for the replica takes some seconds more.
 */
const takeOverTime = 60_000;

/** Milliseconds for the pointer of a key. */
const pointTimeout = 2_000;

/**
 * Keeps everything in a Redis Cluster. A script can only use keys of one slot, so the store has parts, each a whole
 * `RedisStore` whose keys are in one slot. A session and its runs are in one part, which the end of their ids decides. A part
 * whose primary is away keeps only its own runs waiting. Lists for clients need all parts.
 */
export class RedisClusterStore implements Store {
  readonly claims: RunClaims;
  readonly outbox: ClusterDeliveries;
  readonly partitions: Partitions;
  readonly #redis: RedisClient;
  readonly #parts: Parts<RedisStore>;
  readonly #subscription: SharedSubscription;

  private constructor(redis: RedisClient, parts: Parts<RedisStore>, prefixes: readonly string[]) {
    this.#redis = redis;
    this.#parts = parts;
    this.partitions = parts;
    this.claims = new ClusterClaims(parts);
    this.outbox = new ClusterDeliveries(parts);
    this.#subscription = new SharedSubscription(
      prefixes.map(channelNames),
      (channels, onText) => subscribe(redis, channels, onText),
      (id) => parts.of(id),
    );
  }

  /**
   * `warn` is called for settings that may lose commits, and where the open waits: for `takeOverTime` where the cluster is
   * down, and not where no node answers. `parts` is only for tests.
   * @throws Error where no node answers, the cluster is down, or a newer Rivulet wrote its data
   */
  static open(
    address: ClusterAddress,
    prefix: string,
    warn: (text: string) => void = () => {},
    parts = clusterParts,
  ): Promise<RedisClusterStore> {
    const until = performance.now() + takeOverTime;
    let warned = false;
    const again = (error: unknown): boolean => {
      if (!(isRedisUnavailable(error) || error instanceof TooLate) || performance.now() >= until) return false;
      if (!warned) warn(`waiting up to ${takeOverTime / 1_000} s for a Redis Cluster that is down: ${reasonOf(error)}`);
      warned = true;
      return true;
    };
    return retry(() => RedisClusterStore.#open(address, prefix, warn, parts), { again });
  }

  static async #open(
    address: ClusterAddress,
    prefix: string,
    warn: (text: string) => void,
    parts: number,
  ): Promise<RedisClusterStore> {
    const redis = await connectCluster(address);
    return orDisconnect(redis, async () => {
      const maxBytes = await maxTextBytes(redis);
      const prefixes = clusterPrefixes(prefix, parts);
      const stores = await allOf(prefixes.map((one) => RedisStore.over(redis, one, maxBytes)));
      for (const warning of await durabilityWarnings(redis)) warn(warning);
      return new RedisClusterStore(redis, new Parts(stores), prefixes);
    });
  }

  /** The writes belong to one part: see `Partitions`. Without writes, it asks all parts, of which one has to answer. */
  async commit(writes: readonly Write[]): Promise<Outcome[]> {
    const [first] = writes;
    if (first === undefined) return (await this.#parts.answered((part) => part.commit([]))).flat();
    const index = this.#parts.of(first.row.run_id);
    if (writes.some(({ row }) => this.#parts.of(row.run_id) !== index))
      throw new RangeError('the writes of a commit have to belong to one part of the store');
    const commit = (some: readonly Write[]): Promise<Outcome[]> => this.#parts.ask(index, (part) => part.commit(some));
    if (writes.every(({ key }) => key === undefined)) return commit(writes);
    const isPointed = await this.#pointAll(writes);
    const outcomes = await commit(writes.filter((_, at) => isPointed[at]));
    let at = 0;
    return isPointed.map((pointed) => (pointed ? (outcomes[at++] ?? 'fenced') : 'key_used'));
  }

  /**
   * Which writes the part may take. Of several with one key, it is the first one that has not lost the key to another. A
   * run is not created where the part of its key does not answer: the other writes must not wait for that.
   */
  async #pointAll(writes: readonly Write[]): Promise<boolean[]> {
    const byKey = new Map<string, Promise<boolean>>();
    const pointed = writes.map(async (write) => {
      if (write.key === undefined) return true;
      const name = idOfKey(write.key);
      const earlier = byKey.get(name) ?? Promise.resolve(false);
      const isPointed = earlier.then(
        (isTaken) =>
          !isTaken &&
          within(pointTimeout, this.#point(write)).catch((error: unknown) => {
            if (write.input !== undefined) return false;
            throw error;
          }),
      );
      // One that fails takes nothing, and is reported by its own write.
      byKey.set(
        name,
        Promise.all([earlier, isPointed]).then(
          (all) => all.includes(true),
          () => false,
        ),
      );
      return isPointed;
    });
    return allOf(pointed);
  }

  /**
   * Makes the pointer of a write's key point to its run: see `KeyPointers`. Where it pointed to another run, whose commit
   * has not stored the key, that commit is refused first: it may still be under way. So only one of two requests is
   * executed. Resolves to false where the other one was, or has refused this one.
   */
  async #point({ key }: Write): Promise<boolean> {
    if (key === undefined) return true;
    const { pointers } = this.#parts.with(idOfKey(key));
    for (let before = await pointers.find(key); ; ) {
      let former = before?.former;
      if (before !== undefined && before.run_id !== key.run_id) {
        if (await this.#parts.with(key.run_id).pointers.isRefused(key, key.run_id)) return false;
        const stored = await this.#parts.with(before.run_id).pointers.refuse(key, before.run_id);
        if (stored !== undefined && stored.created_at >= key.fresh) return false;
        if (stored !== undefined) former = stored.run_id;
      }
      const pointer = await pointers.point(key, former, before);
      if (pointer?.run_id === key.run_id) return true;
      before = pointer;
    }
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    const pointer = await this.#parts.with(idOfKey({ scope, key })).pointers.find({ scope, key });
    for (const run_id of [pointer?.run_id, pointer?.former]) {
      const stored = run_id === undefined ? undefined : await this.#parts.with(run_id).key(scope, key);
      if (stored?.run_id === run_id) return stored;
    }
    return undefined;
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    return this.#parts.with(run_id).run(run_id);
  }

  async input(run_id: string): Promise<RunInput | undefined> {
    return this.#parts.with(run_id).input(run_id);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    return this.#parts.with(run_id).events(run_id, after, limit);
  }

  async journal(run_id: string): Promise<string[]> {
    return this.#parts.with(run_id).journal(run_id);
  }

  async compareAndSet(run_id: string, column: SharedColumn, before: SharedValue, after: SharedValue): Promise<boolean> {
    return this.#parts.with(run_id).compareAndSet(run_id, column, before, after);
  }

  async remove(run_id: string): Promise<boolean> {
    return this.#parts.with(run_id).remove(run_id);
  }

  async watch(notify: (notifications: readonly RunNotification[] | undefined) => void): Promise<Watch> {
    return this.#subscription.add(notify);
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    return this.#parts.with(session_id).session(session_id);
  }

  async resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]> {
    const groups = this.#parts.group(resource_ids);
    const found = await this.#parts.each((part, index) => part.resources(groups.get(index) ?? []), groups.keys());
    const byId = new Map(found.flat().map((resource) => [resource?.resource_id, resource]));
    return resource_ids.map((id) => byId.get(id));
  }

  async sessionsOf(owner: string, limit: number): Promise<string[]> {
    return (await this.#parts.each((part) => part.sessionsOf(owner, limit))).flat().slice(0, limit);
  }

  async removeSession(session_id: string): Promise<boolean> {
    return this.#parts.with(session_id).removeSession(session_id);
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    const found = await this.#parts.each((part) => part.runs(filter, before, limit), this.#with(filter));
    return newestFirst(found, 'run_id', limit);
  }

  async runsByStatusTime(filter: StatusFilter, after: StatusPosition | undefined, limit: number): Promise<RunRow[]> {
    const found = await this.#parts.each((part) => part.runsByStatusTime(filter, after, limit), this.#with(filter));
    return newestStatuses(found.flat(), after, limit);
  }

  async countRuns(filter: StatusFilter): Promise<number> {
    return sum(await this.#parts.each((part) => part.countRuns(filter), this.#with(filter)));
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    const found = await this.#parts.each(
      (part) => part.unfinished(session_id, after, limit),
      this.#with({ session_id }),
    );
    return newestFirst(found, 'run_id', Number.POSITIVE_INFINITY).reverse().slice(0, limit);
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    const found = await this.#parts.answered((part) => part.due(now, limit));
    return found
      .flat()
      .sort((a, b) => ((a.due ?? '') < (b.due ?? '') ? -1 : 1))
      .slice(0, limit);
  }

  async count(session_id: string): Promise<number> {
    return this.#parts.with(session_id).count(session_id);
  }

  async openRuns(owner?: string): Promise<OpenRuns[]> {
    const found = (await this.#parts.answered((part) => part.openRuns(owner))).flat();
    return openStatuses.flatMap((status) => {
      const all = found.filter((one) => one.status === status);
      const [oldest] = all.map((one) => one.oldest).sort();
      return oldest === undefined ? [] : [{ status, count: sum(all.map(({ count }) => count)), oldest }];
    });
  }

  async figures(agent_names: readonly string[], owner?: string): Promise<AgentFigures[]> {
    // Manifests have them, which are more use without the figures of a part than not at all.
    const found = (await this.#parts.answered((part) => part.figures(agent_names, owner))).flat();
    return agent_names.flatMap((name) => {
      const [first, ...rest] = found.filter(({ agent_name }) => agent_name === name);
      return first === undefined ? [] : rest.reduce(sumOf, first);
    });
  }

  async removeOwner(owner: string): Promise<void> {
    await this.#parts.each((part) => part.removeOwner(owner));
  }

  async sweep(before: Cutoffs): Promise<boolean> {
    return (await this.#parts.answered((part) => part.sweep(before))).includes(true);
  }

  async close(): Promise<void> {
    await closeClient(this.#redis, Promise.all([this.#subscription.close(), this.#parts.each((part) => part.drain())]));
  }

  /** The parts that may have the runs of a filter; undefined for all. */
  #with({ session_id, part }: { session_id?: string | undefined; part?: number }): number[] | undefined {
    if (session_id !== undefined) return [this.#parts.of(session_id)];
    return part === undefined ? undefined : [part];
  }
}
