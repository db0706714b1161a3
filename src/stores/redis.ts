import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { isFinal } from '../core/status.ts';
import type {
  AgentFigures,
  Batch,
  Key,
  Moved,
  Outcome,
  Resource,
  RunFilter,
  RunRow,
  SessionRow,
  Store,
  Write,
} from '../core/store.ts';
import type { Message } from '../schema/message.ts';
import { Deliveries } from './deliveries.ts';
import { within } from './outage.ts';
import { type Parcel, parcels } from './parcels.ts';
import { redisAway } from './redis-away.ts';
import { defineScripts } from './redis-scripts.ts';
import { subscribe } from './redis-watch.ts';
import { describe, keyName, time } from './redis-write.ts';
import { Watchers } from './watchers.ts';

/** How many runs and keys one sweep takes; some 20 µs each, in which Redis does nothing else. */
const sweepRows = 100;

/** A reader holds a page for as long as it does not read, so a page of long lines ends early, after a batch. */
const pageBytes = 16 * 1024;
const pageBatches = 64;

/** Runs that are looked at in one call, where a list is filtered. */
const listed = 200;

/** How long the connections may take to end in good order, in milliseconds. */
const goodbye = 1_000;

/**
 * One Redis server, 6.2 or newer, for everything. A commit is one call of a script, and atomic; a batch of events is one
 * entry of the run's stream. What survives a crash of Redis is up to its settings.
 * One connection, and one more while anybody watches. Where a connection is lost, or ten seconds without an answer are
 * over, a read fails and a commit waits; the client connects again by itself.
 */
export class RedisStore implements Store {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #writer = randomUUID();
  readonly #deliveries = new Deliveries((parcel, number) => this.#take(parcel, number), redisAway);
  readonly #watchers = new Watchers((hear) => subscribe(this.#redis, `${this.#prefix}moved`, hear));

  private constructor(redis: Redis, prefix: string) {
    this.#redis = redis;
    // In braces: what is kept together for a cluster is what is between them.
    this.#prefix = `{${prefix}}:`;
    redis.on('ready', () => this.#deliveries.wake());
  }

  /** `redis://` or `rediss://`, and the `prefix` of all names. @throws Error where there is no such database */
  static async open(url: string, prefix: string): Promise<RedisStore> {
    const redis = new Redis(url, {
      connectionName: 'rivulet',
      lazyConnect: true,
      connectTimeout: 3_000,
      socketTimeout: 10_000,
      disconnectTimeout: 500,
      // Nothing is sent again by the client: reads fail soon, and commits have numbers.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      retryStrategy: (times) => Math.min(times * 50, 1_000),
      // The server has become a replica; its name may lead to the new primary by now.
      reconnectOnError: ({ message }) => /(?:^|: -)READONLY\b/.test(message),
    });
    let failure: unknown;
    const failed = (error: unknown): void => {
      failure ??= error;
    };
    redis.on('error', failed);
    // A database that does not exist is told as an event only, and its names would end up in another one.
    await redis.connect().catch(failed);
    if (failure !== undefined) {
      redis.disconnect();
      throw failure;
    }
    // Later ones are told by the commands that they break.
    redis.off('error', failed).on('error', () => {});
    defineScripts(redis);
    return new RedisStore(redis, prefix);
  }

  async commit(writes: readonly Write[]): Promise<Outcome[]> {
    const taken = await this.#deliveries.commit(parcels(writes, describe));
    return taken.map((one) => (one ? 'taken' : 'fenced'));
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    const [row, last] = await this.#redis.hmget(this.#name('run', run_id), 'row', 'last');
    return row == null || last == null ? undefined : rowOf(row, last);
  }

  async input(run_id: string): Promise<Message[] | undefined> {
    const input = await this.#redis.hget(this.#name('run', run_id), 'input');
    return input === null ? undefined : JSON.parse(input);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    const batches = Math.min(limit, pageBatches);
    const found = await this.#redis.rivuletPage(this.#prefix, run_id, after + 1, batches, pageBytes);
    return found.map(([id, body]) => {
      const lines = body.split('\n');
      return { first: Number.parseInt(id, 10) - lines.length + 1, lines };
    });
  }

  async journal(run_id: string): Promise<string[]> {
    const found = await this.#redis.lrange(this.#name('journal', run_id), 0, -1);
    return found.flatMap((body) => body.split('\n'));
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    const { agent_name, session_id, status } = filter;
    const accept = (row: RunRow): boolean =>
      (agent_name === undefined || row.agent_name === agent_name) &&
      (session_id === undefined || row.session_id === session_id) &&
      (status === undefined || row.status === status);
    // The shortest list: the runs of a session are few, and so are those that are not over.
    const name =
      session_id !== undefined
        ? `of:${session_id}`
        : status !== undefined && (!isFinal(status) || agent_name === undefined)
          ? `status:${status}`
          : agent_name !== undefined
            ? `agent:${agent_name}`
            : 'runs';
    return this.#list('ZREVRANGEBYLEX', name, before === undefined ? '+' : `(${before}`, limit, accept);
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    const name = session_id === undefined ? 'unfinished' : `of:${session_id}`;
    return this.#list('ZRANGEBYLEX', name, `(${after}`, limit, (row) => row.finished_at === null);
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    return rowsOf(await this.#redis.rivuletList(this.#prefix, 'ZRANGEBYSCORE', 'due', '-inf', `${time(now)}`, limit));
  }

  async count(session_id: string): Promise<number> {
    return (await this.unfinished(session_id, '', 1e9)).length;
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    const text = await this.#redis.hget(`${this.#prefix}keys`, keyName({ scope, key }));
    return text === null ? undefined : JSON.parse(text);
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    const [[urls, state], history] = await Promise.all([
      this.#redis.hmget(this.#name('session', session_id), 'urls', 'state'),
      this.#redis.zrange(this.#name('history', session_id), '0', '-1'),
    ]);
    return urls == null ? undefined : { session_id, history, state: state ?? null };
  }

  async resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]> {
    const texts = await Promise.all(resource_ids.map((id) => this.#redis.get(this.#name('resource', id))));
    return texts.map((text) => (text === null ? undefined : JSON.parse(text)));
  }

  async figures(agent_names: readonly string[]): Promise<AgentFigures[]> {
    const found = await Promise.all(agent_names.map((name) => this.#redis.hgetall(this.#name('figures', name))));
    return agent_names.flatMap((agent_name, index) => {
      const { tokens, seconds, completed = 0, failed = 0 } = found[index] ?? {};
      if (tokens === undefined) return [];
      return {
        agent_name,
        completed: Number(completed),
        failed: Number(failed),
        tokens: Number(tokens),
        seconds: Number(seconds),
      };
    });
  }

  async remove(run_id: string): Promise<boolean> {
    await this.#redis.rivuletRemove(this.#prefix, run_id);
    return true;
  }

  async removeSession(session_id: string): Promise<boolean> {
    await this.#redis.rivuletRemoveSession(this.#prefix, session_id);
    return true;
  }

  async sweep(before: { runs?: string; keys: string }): Promise<boolean> {
    return (await this.#redis.rivuletSweep(this.#prefix, time(before.runs), time(before.keys), sweepRows)) > 0;
  }

  async watch(moved: (moves: readonly Moved[] | undefined) => void): Promise<() => Promise<void>> {
    return this.#watchers.add(moved);
  }

  async close(): Promise<void> {
    await this.#watchers.close();
    const done = this.#deliveries.close();
    await within(
      goodbye,
      done.then(() => this.#redis.quit()).catch(() => {}),
    );
    // What is still under way ends with the connection.
    this.#redis.disconnect();
    await done;
  }

  async #take({ writes, bodies }: Parcel, number: number): Promise<boolean[]> {
    const answer = await this.#redis.rivuletTake(this.#prefix, this.#writer, number, writes, ...bodies);
    return Array.from(answer, (taken) => taken === '1');
  }

  /** The runs of a list from a name on, page by page, until there are enough of those that are wanted. */
  async #list(
    range: 'ZRANGEBYLEX' | 'ZREVRANGEBYLEX',
    name: string,
    from: string,
    limit: number,
    accept: (row: RunRow) => boolean,
  ): Promise<RunRow[]> {
    const found: RunRow[] = [];
    const to = range === 'ZRANGEBYLEX' ? '+' : '-';
    for (let next = from; ; ) {
      const rows = rowsOf(await this.#redis.rivuletList(this.#prefix, range, name, next, to, listed));
      found.push(...rows.filter(accept).slice(0, limit - found.length));
      const last = rows.at(-1);
      if (last === undefined || rows.length < listed || found.length === limit) return found;
      next = `(${last.run_id}`;
    }
  }

  #name(kind: string, id: string): string {
    return `${this.#prefix}${kind}:${id}`;
  }
}

const rowOf = (row: string, last: string): RunRow => ({ ...JSON.parse(row), last: Number(last) });
const rowsOf = (found: [string, string][]): RunRow[] => found.map(([row, last]) => rowOf(row, last));
