import type { ChannelNames } from '../remote/shared-subscription.ts';
import { answered, primariesOf, type RedisClient } from './connection.ts';
import { upgradeToNodes } from './upgrade.ts';

// The keys; all begin with the store's prefix. The prefix is a hash tag, so that a cluster keeps all keys in one slot,
// where one script may use them. In a cluster, each part of the store has a prefix of its own: see `clusterPrefixes`.
//
//   version            string  version of this layout
//   run:ID             hash    row (JSON, without its targets and readers), last, epoch, status, agent, session, owner, input (JSON),
//                            targets, readers,
//                            node (the one that has the run), needs_node, needs_agent (1 or 0: see `RunClaims`)
//   log:ID             stream  an entry is a batch: its id is the number of its last event, its field `b` has the lines
//   journal:ID         list    lines, as written
//   made:ID            set     resources that are deleted with the run
//   agents             set     agents that have runs, or had some
//   runs, agent:NAME, status:STATUS, agent-status:NAME:STATUS, of:SESSION, unfinished, unfinished:SESSION,
//   parked, owner:OWNER, owner-status:OWNER:STATUS
//                      zset    ids of runs, all with the score 0: ordered by id, which is by time
//   at:AGENT:STATUS, at-of:OWNER:AGENT:STATUS
//                      zset    ids of runs, by the time of their status in milliseconds
//   nodes              zset    nodes with a lease or with runs, by the end of the lease in milliseconds
//   held:NODE          zset    ids of the runs that a node has, with the score 0
//   waiting:AGENT, waiting
//                      zset    ids of the runs that wait for a node with their agent, or for any; with the score 0
//   due, ended         zset    ids of runs, by that time in milliseconds
//   session:ID         hash    state, urls (number of URLs ever added)
//   history:ID         zset    URLs, in the order in which they were added
//   sessions-of:OWNER  set   sessions
//   kept:ID            set     the session's resources
//   own:ID             set     those that belong to no run: the session's states
//   idle               zset    sessions of which a run was deleted, by the time at which that run ended
//   removed            set     tokens of deleted sessions of which runs or resources remain; for each token:
//   left-runs:TOKEN, left-kept:TOKEN    formerly of:SESSION and kept:SESSION
//   resource:ID        string  JSON
//   keys               hash    JSON of each Idempotency-Key, and in a cluster of each pointer: see `KeyPointers`
//   keys:age           zset    the fields of `keys`, by time
//   keys-of:OWNER      set     the fields of `keys` whose scopes begin with the owner
//   refused:RUN:KEY    string  the run must not store the key any more; expires after a day
//   delivery:ID        hash    its columns, due and age (next_at and created_at in milliseconds)
//   deliveries, deliveries:run:RUN, deliveries:owner:OWNER, deliveries:state:STATE, deliveries:owner-state:OWNER:STATE
//                      zset    ids of deliveries, all with the score 0
//   deliveries:due     zset    the first delivery of each line, by the time at which it can be claimed
//   deliveries:ended   zset    deliveries that are not pending, by age
//   line:RUN:SHA1      list    the pending deliveries of a run to one URL, in order
//   failing:OWNER      hash    the failures of each URL: attempts, since, last_at; the owner is empty for none
//   failing            zset    owners and URLs of these, by last_at
//   figures:AGENT      hash    completed, failed, tokens, seconds
//   figures-of:OWNER   hash    the same for each agent, as completed:AGENT and so on
//   commit:WRITER      string  number of the last commit of an open store, and a letter for each write; expires after a day
//
// Applied writes are published on channels: `moved` for what every node hears of (see `isForAllNodes`), `moved:changes` for
// other changes of rows, and `moved:RUN` for all other writes to a run. A text has a line for each write: epoch, last, 1 where the run is final, 4 where it
// waits for a node, 2 where more than `last` may have changed, 3 where only the journal has grown, or else 0, run_id.

/** How all keys and channels begin. A cluster keeps all keys with the same text in braces in one slot. */
export const tagged = (prefix: string): string => `{${prefix}}:`;

export const channelNames = (prefix: string): ChannelNames => ({
  all: `${tagged(prefix)}moved`,
  of: (topic) => `${tagged(prefix)}moved:${topic}`,
});

/** Version of the layout above. Versions 1 and 2 were never released. Version 3 is upgraded. */
export const layout = 4;
const firstLayout = 3;

/**
 * Checks the version of the stored data. Writes it where there is none, and upgrades older data.
 * @throws Error where a newer Rivulet wrote it, or a build from before the first release
 */
export async function checkLayout(redis: RedisClient, prefix: string): Promise<void> {
  const name = `${prefix}version`;
  // Written only where there is none: the user may lack the permission to write, or Redis the memory.
  const found = (await answered(redis.get(name))) ?? (await answered(redis.set(name, layout, 'NX', 'GET'))) ?? layout;
  if (Number(found) > layout) {
    throw new Error(`the prefix ${prefix} was written by a newer Rivulet (layout ${found}, this one knows ${layout})`);
  }
  if (Number(found) < firstLayout) {
    throw new Error(
      `the prefix ${prefix} was written before Rivulet's first release (layout ${found}); use another prefix`,
    );
  }
  if (Number(found) < layout) await upgradeToNodes(redis, prefix);
}

/** A warning for each setting of Redis that may lose acknowledged commits. */
export async function durabilityWarnings(client: RedisClient): Promise<string[]> {
  const infos = await Promise.all(primariesOf(client).map((redis) => answered(redis.info()).catch(() => '')));
  const policies = infos.map((info) => /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction');
  const policy = policies.find((one) => one !== 'noeviction');
  const warnings: string[] = [];
  if (infos.some((info) => /^aof_enabled:0/m.test(info))) {
    warnings.push('Redis keeps no log of its writes: a crash of it loses acknowledged commits; set "appendonly yes"');
  }
  if (policy !== undefined) {
    warnings.push(`Redis removes runs when its memory is full (maxmemory-policy ${policy}); set "noeviction"`);
  }
  return warnings;
}

/**
 * The bytes of the longest text that Redis accepts. It breaks the connection of a client that sends a longer one. Redis may
 * refuse to tell it; then it has the default.
 */
export async function maxTextBytes(client: RedisClient): Promise<number> {
  const found = await Promise.all(
    primariesOf(client).map(async (redis) => {
      const [, bytes] = (await answered(redis.config('GET', 'proto-max-bulk-len')).catch(() => [])) as string[];
      return Number(bytes) || 512 * 1024 * 1024;
    }),
  );
  return Math.min(...found);
}
