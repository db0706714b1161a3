import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { isFinal } from '../../core/run-state.ts';
import type {
  AgentFigures,
  Batch,
  Key,
  Outcome,
  Resource,
  Retention,
  RunFilter,
  RunNotification,
  RunRow,
  SessionRow,
  Store,
  Write,
} from '../../core/store.ts';
import type { Message } from '../../schema/message.ts';
import { Deliveries } from '../remote/deliveries.ts';
import { within } from '../remote/outage.ts';
import { Watchers } from '../remote/watchers.ts';
import { checkLayout, risks } from './layout.ts';
import { defineScripts } from './scripts.ts';
import { redisVerdict } from './unavailable.ts';
import { subscribe } from './watch.ts';
import { describe, keyName, outcomes, time } from './write.ts';

/** How many runs, resources and keys one sweep takes; some 20 µs each, in which Redis does nothing else. */
const sweepRows = 100;

/** How many sessions; each has resources. */
const sweepSessions = 10;

/** A reader holds a page for as long as it does not read, so a page of long lines ends early, after a batch. */
const pageBytes = 16 * 1024;
const pageBatches = 64;

/** Runs that are looked at in one call, where a list is filtered; about 2 ms, in which Redis does nothing else. */
const looked = 500;

/** How long the connections may take to end in good order, in milliseconds. */
const goodbye = 1_000;

/**
 * One Redis server, 6.2 or newer, for everything. A commit is one call of a script, and atomic; a batch of events is one
 * entry of the run's stream. What survives a crash of Redis is up to its settings.
 * A session that is removed is unknown at once; where it has more than a hundred runs, the others are found by their ids
 * until sweeps have cleared them.
 * One connection, and one more while anybody watches. Where a connection is lost, or ten seconds without an answer are
 * over, a read fails and a commit waits; the client connects again by itself.
 */
export class RedisStore implements Store {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #writer = randomUUID();
  readonly #deliveries = new Deliveries((writes, number) => this.#take(writes, number), redisVerdict);
  readonly #watchers = new Watchers((hear) => subscribe(this.#redis, `${this.#prefix}moved`, hear));

  private constructor(redis: Redis, prefix: string) {
    this.#redis = redis;
    // In braces: what is kept together for a cluster is what is between them.
    this.#prefix = `{${prefix}}:`;
    redis.on('ready', () => this.#deliveries.wake());
  }

  /**
   * `redis://` or `rediss://`, and the `prefix` of all names. `warn` is told of settings that may lose commits.
   * @throws Error where there is no such database, or a newer Rivulet has written it
   */
  static async open(url: string, prefix: string, warn: (text: string) => void = () => {}): Promise<RedisStore> {
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
      reconnectOnError: ({ message }) => /(?:^|: -?)READONLY\b/.test(message),
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
    const store = new RedisStore(redis, prefix);
    try {
      await checkLayout(redis, store.#prefix);
    } catch (error) {
      redis.disconnect();
      throw error;
    }
    for (const risk of await risks(redis)) warn(risk);
    return store;
  }

  async commit(writes: readonly Write[]): Promise<Outcome[]> {
    return this.#deliveries.commit(writes);
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    const [row, last] = await this.#redis.hmget(this.#name('run', run_id), 'row', 'last');
    return row == null || last == null ? undefined : rowsOf([[row, last]])[0];
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
    return this.#list('ZREVRANGEBYLEX', shortest(filter), before === undefined ? '+' : `(${before}`, limit, filter);
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    const name = session_id === undefined ? 'unfinished' : `unfinished:${session_id}`;
    return this.#list('ZRANGEBYLEX', name, `(${after}`, limit);
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    const redis = this.#redis;
    const [, found] = await redis.rivuletList(
      this.#prefix,
      'ZRANGEBYSCORE',
      'due',
      '-inf',
      `${time(now)}`,
      limit,
      limit,
      '',
      '',
      '',
    );
    return rowsOf(found);
  }

  async count(session_id: string): Promise<number> {
    return this.#redis.zcard(this.#name('unfinished', session_id));
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
    if (resource_ids.length === 0) return [];
    const texts = await this.#redis.mget(resource_ids.map((id) => this.#name('resource', id)));
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
    return (await this.#redis.rivuletRemove(this.#prefix, run_id)) === 1;
  }

  async removeSession(session_id: string): Promise<boolean> {
    return (await this.#redis.rivuletRemoveSession(this.#prefix, session_id, sweepRows)) === 1;
  }

  async sweep({ runs, keys, sessions }: Retention): Promise<boolean> {
    const times = [time(runs), time(keys), time(sessions)] as const;
    return (await this.#redis.rivuletSweep(this.#prefix, ...times, sweepRows, sweepSessions)) > 0;
  }

  async watch(moved: (moves: readonly RunNotification[] | undefined) => void): Promise<() => Promise<void>> {
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

  async #take(writes: readonly Write[], number: number): Promise<Outcome[]> {
    const described = JSON.stringify(writes.map(describe));
    // Events stay outside of the JSON: to escape them once more, and to undo that, takes half of the time of a commit.
    const bodies = writes.map(({ lines }) => lines.join('\n'));
    const answer = await this.#redis.rivuletTake(this.#prefix, this.#writer, number, described, ...bodies);
    return Array.from(answer, (letter) => outcomes[letter] ?? 'fenced');
  }

  /** The runs of a list from a name on, until there are enough of those that are wanted. */
  async #list(
    range: 'ZRANGEBYLEX' | 'ZREVRANGEBYLEX',
    name: string,
    from: string,
    limit: number,
    { agent_name = '', session_id = '', status }: RunFilter = {},
  ): Promise<RunRow[]> {
    const found: RunRow[] = [];
    const to = range === 'ZRANGEBYLEX' ? '+' : '-';
    for (let next = from; found.length < limit; ) {
      const wanted = limit - found.length;
      const filter = [agent_name, session_id, status ?? ''] as const;
      const [last, rows] = await this.#redis.rivuletList(
        this.#prefix,
        range,
        name,
        next,
        to,
        wanted,
        looked,
        ...filter,
      );
      found.push(...rowsOf(rows));
      if (last === '') break;
      next = `(${last}`;
    }
    return found;
  }

  #name(kind: string, id: string): string {
    return `${this.#prefix}${kind}:${id}`;
  }
}

/** The shortest list that has all runs of a filter. */
function shortest({ agent_name, session_id, status }: RunFilter): string {
  if (session_id !== undefined) {
    return status === undefined || isFinal(status) ? `of:${session_id}` : `unfinished:${session_id}`;
  }
  if (agent_name !== undefined) {
    return status === undefined ? `agent:${agent_name}` : `agent-status:${agent_name}:${status}`;
  }
  return status === undefined ? 'runs' : `status:${status}`;
}

/** Without those that cannot be read: they would keep all others from being listed. */
function rowsOf(found: readonly (readonly [row: string, last: string])[]): RunRow[] {
  return found.flatMap(([row, last]) => {
    try {
      return { ...JSON.parse(row), last: Number(last) };
    } catch {
      return [];
    }
  });
}
