import type { ClientContext, Result } from 'ioredis';
import type { SharedColumn } from '../../core/ports/run-store.ts';
import { claimRuns, endLease, freeRuns, renewLease, takeRuns, upgradeRuns } from './claim-scripts.ts';
import { commitScript } from './commit-script.ts';
import type { RedisClient } from './connection.ts';
import { claimDeliveries, finishDelivery, forgetFailures, listDeliveries, replayDelivery } from './delivery-scripts.ts';
import { pointKey, refuseKey } from './key-scripts.ts';
import { removeOwner, removeRun, removeSession, sweep } from './removal-scripts.ts';
import { type Script, type ScriptKeys, script } from './script.ts';

/** What Redis returns of a run: its row, `last`, its targets and its readers. */
export type RunValues = readonly [row: string, last: string, targets: string | null, readers: string | null];

/**
 * Reads batches of a log. ARGV: the run, the first event, the largest number of batches, and the bytes with which the
 * page is full. It also ends before an entry that would fill a page by itself, unless that is its first. The first reads are
 * small, because one entry with long lines fills a page.
 */
const readPage = script<(run_id: string, from: number, limit: number, bytes: number) => [id: string, body: string][]>(`
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
`);

/**
 * Reads rows of runs through a sorted set. ARGV: the command that reads the set, the set, from and to where; the
 * largest number of rows to return and of runs to examine; then an agent, a session, an owner and a status to
 * filter by, each empty for any. Returns the id at which it stopped, empty at the end of the set, and
 * the row, `last`, the targets and the readers of each run.
 */
const listRuns = script<
  (
    range: 'ZRANGEBYLEX' | 'ZREVRANGEBYLEX' | 'ZRANGEBYSCORE',
    set: string,
    from: string,
    to: string,
    limit: number,
    examined: number,
    agent_name: string,
    session_id: string,
    owner: string,
    status: string,
  ) => [stoppedAt: string, runs: RunValues[]]
>(`
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
`);

/**
 * Reads rows of runs by the time of their status, newest first. ARGV: the set; the largest time, and the id before which
 * runs of that time are read, empty for all; the smallest time; the largest number of rows. Runs of the same millisecond
 * as a position are read in vain.
 */
const listByStatusTime = script<
  (set: string, until: string, before: string, since: string, limit: number) => RunValues[]
>(`
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
`);

/** ARGV: a run, a field of it, its text before and after, each empty for none. Returns 0 where it has another. */
const compareAndSet = script<(run_id: string, field: SharedColumn, before: string, after: string) => number>(`
local run, field = KEYS[1] .. 'run:' .. ARGV[1], ARGV[2]
local stored = redis.call('HMGET', run, 'row', field)
if not stored[1] or (stored[2] or '') ~= ARGV[3] then return 0 end
if ARGV[4] == '' then redis.call('HDEL', run, field) else redis.call('HSET', run, field, ARGV[4]) end
return 1
`);

/** The commands that a client of a store has, by their names. */
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

/** A command gets the keys before the arguments of its script. */
type Commands<Context extends ClientContext> = {
  [Name in keyof typeof scripts]: (typeof scripts)[Name] extends Script<(...args: infer Args) => infer Answer>
    ? (...args: [...ScriptKeys, ...Args]) => Result<Answer, Context>
    : never;
};

declare module 'ioredis' {
  interface RedisCommander<Context> extends Commands<Context> {}
}

/** Defines the commands on a client. */
export function defineScripts(redis: RedisClient): void {
  for (const [name, { lua }] of Object.entries(scripts)) redis.defineCommand(name, { lua, numberOfKeys: 2 });
}
