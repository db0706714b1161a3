import { randomUUID } from 'node:crypto';
import { fullChars } from '../../core/lines.ts';
import type { AgentFigures, OpenRuns, RunFilter, StatusFilter, StatusPosition } from '../../core/ports/run-lists.ts';
import {
  type Batch,
  type Key,
  type Outcome,
  type RunNotification,
  type RunRow,
  type SharedColumn,
  type SharedValue,
  sharedColumns,
  type TargetsChanged,
  type Watch,
  type Write,
} from '../../core/ports/run-store.ts';
import type { Resource, SessionRow } from '../../core/ports/session-store.ts';
import type { Cutoffs, Store } from '../../core/ports/store.ts';
import type { RunInput } from '../../core/request.ts';
import { openStatuses } from '../../core/run-state.ts';
import { CommitQueue } from '../remote/commit-queue.ts';
import { SharedSubscription } from '../remote/shared-subscription.ts';
import { matchesStatus, newestStatuses } from '../status-times.ts';
import { RedisClaims } from './claims.ts';
import { closeClient, connectRedis, orDisconnect, type RedisClient } from './connection.ts';
import { RedisDeliveries } from './deliveries.ts';
import { checkLength, encodeWrite, keyField, outcomeOfLetter, targetsChanged } from './encode-write.ts';
import { classifyRedisError } from './errors.ts';
import { KeyPointers } from './key-pointers.ts';
import { Keyspace } from './keyspace.ts';
import { channelNames, checkLayout, durabilityWarnings, maxTextBytes, tagged } from './layout.ts';
import { parseRows, smallestSet, statusSets } from './run-sets.ts';
import { timestamp } from './scores.ts';
import { defineScripts } from './scripts.ts';
import { subscribe } from './subscription.ts';

/** Runs, resources and keys that one sweep deletes, at about 20 µs each, during which Redis serves no other command. */
const sweepRows = 100;

/** Sessions that one sweep examines; each has resources. */
const sweepSessions = 10;

/** The most batches of a page. */
const pageBatches = 64;

/** Runs that one call examines for a filtered list: about 2 ms, during which Redis serves no other command. */
const examined = 500;

/** Fields of an agent's figures. */
const figureFields = ['tokens', 'seconds', 'completed', 'failed'] as const;

/**
 * Keeps everything in one Redis server, 6.2 or newer. A commit is one call of a script, and atomic; a batch of events
 * is one entry of the run's stream. The settings of Redis decide what survives its crash. A deleted session is unknown
 * at once, and so are its resources. Of one with more than a hundred runs, the other runs can be found by their ids until
 * sweeps have deleted them. The store has one connection, and a second one while there are subscribers. Where a connection is lost, or
 * Redis does not answer for ten seconds, a read fails and a commit waits. The client reconnects by itself.
 */
export class RedisStore extends Keyspace implements Store {
  readonly claims: RedisClaims;
  readonly outbox: RedisDeliveries;
  readonly pointers: KeyPointers;
  readonly #maxBytes: number;
  readonly #writer = randomUUID();
  readonly #commits = new CommitQueue((writes, number) => this.#send(writes, number), classifyRedisError);
  readonly #subscription: SharedSubscription;

  private constructor(redis: RedisClient, prefix: string, maxBytes: number) {
    super(redis, tagged(prefix));
    this.#maxBytes = maxBytes;
    this.#subscription = new SharedSubscription([channelNames(prefix)], (channels, onText) =>
      subscribe(this.redis, channels, onText),
    );
    this.claims = new RedisClaims(redis, this.prefix);
    this.outbox = new RedisDeliveries(redis, this.prefix);
    this.pointers = new KeyPointers(redis, this.prefix);
    redis.on('ready', () => this.#commits.retryNow());
  }

  /**
   * `url` is `redis://` or `rediss://`; all keys begin with `prefix`. `warn` is called for settings that may lose
   * commits.
   * @throws Error where the database does not exist, or a newer Rivulet wrote it
   */
  static async open(url: string, prefix: string, warn: (text: string) => void = () => {}): Promise<RedisStore> {
    const redis = await connectRedis(url);
    return orDisconnect(redis, async () => {
      const store = await RedisStore.over(redis, prefix, await maxTextBytes(redis));
      for (const warning of await durabilityWarnings(redis)) warn(warning);
      return store;
    });
  }

  /** The store on a client. `maxBytes`: see `maxTextBytes`. @throws as `open` does */
  static async over(redis: RedisClient, prefix: string, maxBytes: number): Promise<RedisStore> {
    defineScripts(redis);
    const store = new RedisStore(redis, prefix, maxBytes);
    await checkLayout(redis, store.prefix);
    return store;
  }

  async commit(writes: readonly Write[]): Promise<Outcome[]> {
    return this.#commits.commit(writes);
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    const fields = ['row', 'last', ...sharedColumns];
    const [row, last, targets = null, readers = null] = await this.redis.hmget(this.keyOf('run', run_id), ...fields);
    return row == null || last == null ? undefined : parseRows([[row, last, targets, readers]])[0];
  }

  async input(run_id: string): Promise<RunInput | undefined> {
    const input = await this.redis.hget(this.keyOf('run', run_id), 'input');
    return input === null ? undefined : JSON.parse(input);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    const batches = Math.min(limit, pageBatches);
    const found = await this.redis.rivuletPage(...this.keys, run_id, after + 1, batches, fullChars);
    return found.map(([id, body]) => {
      const lines = body.split('\n');
      return { first: Number.parseInt(id, 10) - lines.length + 1, lines };
    });
  }

  async journal(run_id: string): Promise<string[]> {
    const found = await this.redis.lrange(this.keyOf('journal', run_id), 0, -1);
    return found.flatMap((body) => body.split('\n'));
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    return this.#list('ZREVRANGEBYLEX', smallestSet(filter), before === undefined ? '+' : `(${before}`, limit, filter);
  }

  async runsByStatusTime(filter: StatusFilter, after: StatusPosition | undefined, limit: number): Promise<RunRow[]> {
    if (filter.session_id !== undefined) return newestStatuses(await this.#ofSession(filter), after, limit);
    const until = after === undefined ? '+inf' : String(timestamp(after.status_at));
    const range = [until, after?.run_id ?? '', String(timestamp(filter.since)), limit] as const;
    const found = await Promise.all(
      (await this.#statusSets(filter)).map((set) => this.redis.rivuletListByStatusTime(...this.keys, set, ...range)),
    );
    return newestStatuses(parseRows(found.flat()), after, limit);
  }

  async countRuns(filter: StatusFilter): Promise<number> {
    if (filter.session_id !== undefined) return (await this.#ofSession(filter)).length;
    const since = timestamp(filter.since);
    const counts = (await this.#statusSets(filter)).map((set) => this.redis.zcount(this.keyOf(set), since, '+inf'));
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  }

  async #statusSets(filter: StatusFilter): Promise<string[]> {
    return statusSets(filter, filter.agent_names ?? (await this.redis.smembers(this.keyOf('agents'))));
  }

  async #ofSession(filter: StatusFilter): Promise<RunRow[]> {
    const found = await this.#list('ZRANGEBYLEX', `of:${filter.session_id}`, '-', Number.MAX_SAFE_INTEGER);
    return found.filter((row) => matchesStatus(row, filter));
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    const set = session_id === undefined ? 'unfinished' : `unfinished:${session_id}`;
    return this.#list('ZRANGEBYLEX', set, `(${after}`, limit);
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    return this.#byTime('due', '-inf', `${timestamp(now)}`, limit);
  }

  async count(session_id: string): Promise<number> {
    return this.redis.zcard(this.keyOf('unfinished', session_id));
  }

  async openRuns(owner?: string): Promise<OpenRuns[]> {
    const list = owner === undefined ? ['status'] : ['owner-status', owner];
    const found = await Promise.all(
      openStatuses.map(async (status) => {
        const set = this.keyOf(...list, status);
        const [count, [oldest]] = await Promise.all([this.redis.zcard(set), this.redis.zrange(set, '0', '0')]);
        return oldest === undefined ? [] : [{ status, count, oldest }];
      }),
    );
    return found.flat();
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    const text = await this.redis.hget(this.keyOf('keys'), keyField({ scope, key }));
    return text === null ? undefined : JSON.parse(text);
  }

  async compareAndSet(run_id: string, column: SharedColumn, before: SharedValue, after: SharedValue): Promise<boolean> {
    return (await this.redis.rivuletCompareAndSet(...this.keys, run_id, column, before ?? '', after ?? '')) === 1;
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    const [[urls, state], history] = await Promise.all([
      this.redis.hmget(this.keyOf('session', session_id), 'urls', 'state'),
      this.redis.zrange(this.keyOf('history', session_id), '0', '-1'),
    ]);
    return urls == null ? undefined : { session_id, history, state: state ?? null };
  }

  async resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]> {
    if (resource_ids.length === 0) return [];
    // In this order: a session that is removed in between was there when the call began.
    const [removed, texts] = await Promise.all([
      this.redis.scard(this.keyOf('removed')),
      this.redis.mget(resource_ids.map((id) => this.keyOf('resource', id))),
    ]);
    const found = texts.map((text): Resource | undefined => (text === null ? undefined : JSON.parse(text)));
    if (removed === 0) return found;
    return Promise.all(found.map(async (one) => (one && (await this.#isKept(one)) ? one : undefined)));
  }

  /** Whether the session of a resource was not removed: then sweeps delete the resource. */
  async #isKept({ session_id, resource_id }: Resource): Promise<boolean> {
    return (await this.redis.sismember(this.keyOf('kept', session_id), resource_id)) === 1;
  }

  async figures(agent_names: readonly string[], owner?: string): Promise<AgentFigures[]> {
    const found = await Promise.all(
      agent_names.map((name) =>
        owner === undefined
          ? this.redis.hmget(this.keyOf('figures', name), ...figureFields)
          : this.redis.hmget(this.keyOf('figures-of', owner), ...figureFields.map((field) => `${field}:${name}`)),
      ),
    );
    return agent_names.flatMap((agent_name, index) => {
      const [tokens, seconds, completed, failed] = found[index] ?? [];
      if (tokens == null) return [];
      return {
        agent_name,
        completed: Number(completed),
        failed: Number(failed),
        tokens: Number(tokens),
        seconds: Number(seconds),
      };
    });
  }

  async sessionsOf(owner: string, limit: number): Promise<string[]> {
    return this.redis.srandmember(this.keyOf('sessions-of', owner), limit);
  }

  async remove(run_id: string): Promise<boolean> {
    return (await this.redis.rivuletRemove(...this.keys, run_id)) === 1;
  }

  async removeSession(session_id: string): Promise<boolean> {
    return (await this.redis.rivuletRemoveSession(...this.keys, session_id, sweepRows)) === 1;
  }

  async removeOwner(owner: string): Promise<void> {
    while ((await this.redis.rivuletRemoveOwner(...this.keys, owner, sweepRows)) > 0);
  }

  async sweep({ runs, keys, sessions, deliveries }: Cutoffs): Promise<boolean> {
    const times = [timestamp(runs), timestamp(keys), timestamp(sessions)] as const;
    return (await this.redis.rivuletSweep(...this.keys, ...times, sweepRows, sweepSessions, timestamp(deliveries))) > 0;
  }

  async watch(moved: (moves: readonly RunNotification[] | undefined) => void): Promise<Watch> {
    return this.#subscription.add(moved);
  }

  /** Ends its subscription and its commits, but not the client. Resolves when each commit was answered or has failed. */
  async drain(): Promise<void> {
    await Promise.all([this.#subscription.close(), this.#commits.close()]);
  }

  async close(): Promise<void> {
    await closeClient(this.redis, this.drain());
  }

  async #send(writes: readonly Write[], number: number): Promise<Outcome[]> {
    const encoded = JSON.stringify(writes.map(encodeWrite));
    // Events are passed beside the JSON: to escape and parse them again would take half of the time of a commit.
    const bodies = writes.map(({ lines }) => lines.join('\n'));
    for (const text of [encoded, ...bodies]) checkLength(text, this.#maxBytes);
    const answer = await this.redis.rivuletCommit(...this.keys, this.#writer, number, encoded, ...bodies);
    const outcomes = Array.from(answer, (letter, index) =>
      letter === targetsChanged ? this.#targetsOf(writes[index]) : (outcomeOfLetter[letter] ?? 'fenced'),
    );
    return Promise.all(outcomes);
  }

  /** Read after the commit: they may be newer than those that refused the write. */
  async #targetsOf(write: Write | undefined): Promise<TargetsChanged> {
    return { targets: await this.redis.hget(this.keyOf('run', write?.row.run_id ?? ''), 'targets') };
  }

  /** Reads a sorted set of runs from an id on, until `limit` runs match the filter. */
  async #list(
    range: 'ZRANGEBYLEX' | 'ZREVRANGEBYLEX',
    set: string,
    from: string,
    limit: number,
    { agent_name = '', session_id = '', owner = '', status }: RunFilter = {},
  ): Promise<RunRow[]> {
    const found: RunRow[] = [];
    const to = range === 'ZRANGEBYLEX' ? '+' : '-';
    for (let next = from; found.length < limit; ) {
      const missing = limit - found.length;
      const filter = [agent_name, session_id, owner, status ?? ''] as const;
      const [last, rows] = await this.redis.rivuletList(
        ...this.keys,
        range,
        set,
        next,
        to,
        missing,
        examined,
        ...filter,
      );
      found.push(...parseRows(rows));
      if (last === '') break;
      next = `(${last}`;
    }
    return found;
  }

  /** Reads a sorted set of runs by their times. */
  async #byTime(set: string, from: string, to: string, limit: number): Promise<RunRow[]> {
    const range = 'ZRANGEBYSCORE';
    const [, found] = await this.redis.rivuletList(...this.keys, range, set, from, to, limit, limit, '', '', '', '');
    return parseRows(found);
  }
}
