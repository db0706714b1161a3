import type { Result } from 'ioredis';
import type { SharedColumn } from '../../core/ports/run-store.ts';
import { claimRuns, endLease, freeRuns, renewLease, takeRuns, upgradeRuns } from './claim-scripts.ts';
import { commitScript } from './commit-script.ts';
import type { RedisClient } from './connection.ts';
import {
  claimDeliveries,
  type DeliveryValues,
  finishDelivery,
  forgetFailures,
  listDeliveries,
  replayDelivery,
} from './delivery-scripts.ts';
import { pointKey, refuseKey } from './key-scripts.ts';
import { removeOwner, removeRun, removeSession, sweep } from './removal-scripts.ts';

/**
 * Reads batches of a log. ARGV: the run, the first event, the largest number of batches, and the bytes with which the
 * page is full. It also ends before an entry that would fill a page by itself, unless that is its first. The first reads are
 * small, because one entry with long lines fills a page.
 */
const readPage = `
local log, found, chars, count = KEYS[1] .. 'log:' .. ARGV[1], {}, 0, 1
local from = ARGV[2] .. '-0'
while true do
  local entries = redis.call('XRANGE', log, from, '+', 'COUNT', count)
  for _, entry in ipairs(entries) do
    local body = entry[2][2]
    if #found > 0 and #body >= tonumber(ARGV[4]) then return found end
    found[#found + 1] = { entry[1], body }
    chars = chars + #body
    from = '(' .. entry[1]
    if #found >= tonumber(ARGV[3]) or chars >= tonumber(ARGV[4]) then return found end
  end
  if #entries < count then return found end
  count = math.min(count * 2, 64)
end
`;

/**
 * Reads rows of runs through a sorted set. ARGV: the command that reads the set, the set, from and to where; the
 * largest number of rows to return and of runs to examine; then an agent, a session, an owner and a status to
 * filter by, each empty for any. Returns the id at which it stopped, empty at the end of the set, and
 * the row, `last`, the targets and the readers of each run.
 */
const listRuns = `
local p, found = KEYS[1], {}
local wanted, most = tonumber(ARGV[5]), tonumber(ARGV[6])
local ids = redis.call(ARGV[1], p .. ARGV[2], ARGV[3], ARGV[4], 'LIMIT', 0, most)
for n, id in ipairs(ids) do
  local run = redis.call('HMGET', p .. 'run:' .. id, 'row', 'last', 'agent', 'session', 'owner', 'status', 'targets', 'readers')
  local fits = run[1] and run[2]
  for i = 1, 4 do fits = fits and (ARGV[6 + i] == '' or ARGV[6 + i] == run[2 + i]) end
  if fits then found[#found + 1] = { run[1], run[2], run[7], run[8] } end
  if #found == wanted then return { id, found } end
end
return { #ids == most and ids[most] or '', found }
`;

/**
 * Reads rows of runs by the time of their status, newest first. ARGV: the set; the largest time, and the id before which
 * runs of that time are read, empty for all; the smallest time; the largest number of rows. Runs of the same millisecond
 * as a position are read in vain.
 */
const listByStatusTime = `
local p, found, at = KEYS[1], {}, 0
local wanted = tonumber(ARGV[5])
while true do
  local ids = redis.call('ZREVRANGEBYSCORE', p .. ARGV[1], ARGV[2], ARGV[4], 'WITHSCORES', 'LIMIT', at, wanted)
  for n = 1, #ids, 2 do
    if ids[n + 1] ~= ARGV[2] or ARGV[3] == '' or ids[n] < ARGV[3] then
      local run = redis.call('HMGET', p .. 'run:' .. ids[n], 'row', 'last', 'targets', 'readers')
      if run[1] and run[2] then found[#found + 1] = run end
      if #found == wanted then return found end
    end
  end
  if #ids < 2 * wanted then return found end
  at = at + wanted
end
`;

/** ARGV: a run, a field of it, its text before and after, each empty for none. Returns 0 where it has another. */
const compareAndSet = `
local run, field = KEYS[1] .. 'run:' .. ARGV[1], ARGV[2]
local stored = redis.call('HMGET', run, 'row', field)
if not stored[1] or (stored[2] or '') ~= ARGV[3] then return 0 end
if ARGV[4] == '' then redis.call('HDEL', run, field) else redis.call('HSET', run, field, ARGV[4]) end
return 1
`;

/**
 * The keys that every script declares: the prefix, which is no key itself, and the version of the layout, which is always
 * there. While a cluster moves their slot, a node has the one and lacks the other; so it answers TRYAGAIN, and no script
 * runs where half of the data is. `KEYS[1]` is the prefix.
 */
export type ScriptKeys = readonly [prefix: string, version: string];

export const scriptKeys = (prefix: string): ScriptKeys => [prefix, `${prefix}version`];

/** What Redis returns of a run: its row, `last`, its targets and its readers. */
export type RunValues = readonly [row: string, last: string, targets: string | null, readers: string | null];

type Range = 'ZRANGEBYLEX' | 'ZREVRANGEBYLEX' | 'ZRANGEBYSCORE';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** Returns a letter for each write; see `commit-script.ts`. */
    rivuletCommit(
      prefix: string,
      version: string,
      writer: string,
      number: number,
      writes: string,
      ...bodies: readonly string[]
    ): Result<string, Context>;
    /** Batches from an event on: the id in the stream and the lines, up to `limit` batches, or as `readPage` says. */
    rivuletPage(
      prefix: string,
      version: string,
      run_id: string,
      from: number,
      limit: number,
      bytes: number,
    ): Result<[string, string][], Context>;
    /** The id at which it stopped, empty at the end; the runs in a part of a sorted set. */
    rivuletList(
      prefix: string,
      version: string,
      range: Range,
      set: string,
      from: string,
      to: string,
      limit: number,
      examined: number,
      agent_name: string,
      session_id: string,
      owner: string,
      status: string,
    ): Result<[string, RunValues[]], Context>;
    rivuletListByStatusTime(
      prefix: string,
      version: string,
      set: string,
      until: string,
      before: string,
      since: string,
      limit: number,
    ): Result<RunValues[], Context>;
    /** Returns 0 where the field has another text. */
    rivuletCompareAndSet(
      prefix: string,
      version: string,
      run_id: string,
      field: SharedColumn,
      before: string,
      after: string,
    ): Result<number, Context>;
    /** Returns 0 where the run is not final. */
    rivuletRemove(prefix: string, version: string, run_id: string): Result<number, Context>;
    /** Returns 0 where one of its runs is not final. */
    rivuletRemoveSession(prefix: string, version: string, session_id: string, limit: number): Result<number, Context>;
    /** Returns the number of deleted items. */
    rivuletRemoveOwner(prefix: string, version: string, owner: string, limit: number): Result<number, Context>;
    /** Returns the number of items from before these times, in milliseconds. */
    rivuletSweep(
      prefix: string,
      version: string,
      runs: number,
      keys: number,
      sessions: number,
      limit: number,
      sessionLimit: number,
      deliveries: number,
    ): Result<number, Context>;
    rivuletClaimDeliveries(
      prefix: string,
      version: string,
      now: number,
      until: number,
      untilText: string,
      limit: number,
    ): Result<DeliveryValues[], Context>;
    /** Returns 0 where the claim is over. */
    rivuletFinishDelivery(
      prefix: string,
      version: string,
      delivery_id: string,
      claimed_until: string,
      state: string,
      status: string,
      error: string,
      nextText: string,
      next: number,
      attemptedText: string,
      attempted: number,
    ): Result<number, Context>;
    rivuletForgetFailures(prefix: string, version: string, owner: string, url: string): Result<null, Context>;
    /** Return the text of a key, empty for none. */
    rivuletPointKey(prefix: string, version: string, key: string, before: string): Result<string, Context>;
    rivuletRefuseKey(prefix: string, version: string, name: string, run_id: string): Result<string, Context>;
    /** Returns 0 where the delivery is pending or unknown. */
    rivuletReplayDelivery(
      prefix: string,
      version: string,
      delivery_id: string,
      nowText: string,
      now: number,
    ): Result<number, Context>;
    /** The id at which it stopped, empty at the end, and the deliveries. */
    rivuletListDeliveries(
      prefix: string,
      version: string,
      set: string,
      from: string,
      limit: number,
      owner: string,
      state: string,
    ): Result<[string, DeliveryValues[]], Context>;
    rivuletRenewLease(prefix: string, version: string, node: string, milliseconds: number): Result<null, Context>;
    rivuletEndLease(prefix: string, version: string, node: string): Result<null, Context>;
    /** Returns the ids of up to `limit` runs. */
    rivuletClaimRuns(
      prefix: string,
      version: string,
      node: string,
      limit: number,
      examined: number,
      ...agents: readonly string[]
    ): Result<string[], Context>;
    /** Returns the ids of those runs that the node has then. */
    rivuletTakeRuns(
      prefix: string,
      version: string,
      node: string,
      ...run_ids: readonly string[]
    ): Result<string[], Context>;
    rivuletFreeRuns(
      prefix: string,
      version: string,
      node: string,
      ...run_ids: readonly string[]
    ): Result<null, Context>;
    /** Each run is followed by its `needs_node` and `needs_agent`. */
    rivuletUpgradeRuns(
      prefix: string,
      version: string,
      from: number,
      to: number | '',
      ...runs: readonly string[]
    ): Result<null, Context>;
  }
}

/** Defines the commands above on a client. */
export function defineScripts(redis: RedisClient): void {
  const scripts = {
    rivuletCommit: commitScript,
    rivuletPage: readPage,
    rivuletList: listRuns,
    rivuletListByStatusTime: listByStatusTime,
    rivuletCompareAndSet: compareAndSet,
    rivuletRemove: removeRun,
    rivuletRemoveSession: removeSession,
    rivuletRemoveOwner: removeOwner,
    rivuletSweep: sweep,
    rivuletClaimDeliveries: claimDeliveries,
    rivuletFinishDelivery: finishDelivery,
    rivuletReplayDelivery: replayDelivery,
    rivuletListDeliveries: listDeliveries,
    rivuletRenewLease: renewLease,
    rivuletEndLease: endLease,
    rivuletForgetFailures: forgetFailures,
    rivuletPointKey: pointKey,
    rivuletRefuseKey: refuseKey,
    rivuletClaimRuns: claimRuns,
    rivuletTakeRuns: takeRuns,
    rivuletFreeRuns: freeRuns,
    rivuletUpgradeRuns: upgradeRuns,
  };
  for (const [name, lua] of Object.entries(scripts)) redis.defineCommand(name, { lua, numberOfKeys: 2 });
}
