import { deliveryLines, dropDeliveries } from './delivery-scripts.ts';
import { finalStatusesInLua, script } from './script.ts';

// Scripts that delete; see `layout.ts` for the keys. Each call deletes a bounded number of items at about 20 µs each,
// during which Redis serves no other command. Redis frees logs in the background.

/** Deletes a run with its log and its journal. Its messages stay in the session. */
const dropRun = `
local p = KEYS[1]
${deliveryLines}${dropDeliveries}
local function drop_run(id)
  local run = redis.call('HMGET', p .. 'run:' .. id, 'agent', 'status', 'session', 'owner', 'node')
  local agent, status, session, owner, node = run[1], run[2], run[3], run[4], run[5]
  local ended = redis.call('ZSCORE', p .. 'ended', id)
  local lists = { 'runs', 'unfinished', 'parked', 'due', 'ended', 'waiting' }
  if agent then
    table.insert(lists, 'agent:' .. agent)
    table.insert(lists, 'waiting:' .. agent)
  end
  if node then table.insert(lists, 'held:' .. node) end
  if status then table.insert(lists, 'status:' .. status) end
  if agent and status then
    table.insert(lists, 'agent-status:' .. agent .. ':' .. status)
    table.insert(lists, 'at:' .. agent .. ':' .. status)
    if owner then table.insert(lists, 'at-of:' .. owner .. ':' .. agent .. ':' .. status) end
  end
  if owner then table.insert(lists, 'owner:' .. owner) end
  if owner and status then table.insert(lists, 'owner-status:' .. owner .. ':' .. status) end
  if session then
    table.insert(lists, 'of:' .. session)
    table.insert(lists, 'unfinished:' .. session)
  end
  for _, name in ipairs(lists) do redis.call('ZREM', p .. name, id) end
  for _, name in ipairs({ 'run:', 'log:', 'journal:', 'made:' }) do redis.call('UNLINK', p .. name .. id) end
  if session and redis.call('EXISTS', p .. 'session:' .. session, p .. 'kept:' .. session) > 0 then
    redis.call('ZADD', p .. 'idle', 'GT', ended or 0, session)
  end
end
`;

/** Deletes a session at once, with up to `most` of its runs and of its resources. Sweeps delete the rest. */
const dropSession = `${dropRun}
-- Returns the number of deleted items. Deletes the token with the last of them.
local function clear(token, most)
  local runs, kept = p .. 'left-runs:' .. token, p .. 'left-kept:' .. token
  -- Each id is followed by its score.
  local ids = redis.call('ZPOPMIN', runs, most)
  for i = 1, #ids, 2 do
    drop_deliveries(ids[i])
    drop_run(ids[i])
  end
  local resources = redis.call('SPOP', kept, most)
  for _, id in ipairs(resources) do redis.call('UNLINK', p .. 'resource:' .. id) end
  if redis.call('EXISTS', runs, kept) == 0 then redis.call('SREM', p .. 'removed', token) end
  return #ids / 2 + #resources
end

local function drop_session(session, most)
  -- A new session of this name may be created before all of this one is deleted.
  local token = session .. ':' .. table.concat(redis.call('TIME'), '.')
  for old, new in pairs({ ['of:'] = 'left-runs:', ['kept:'] = 'left-kept:' }) do
    if redis.call('EXISTS', p .. old .. session) == 1 then
      redis.call('RENAME', p .. old .. session, p .. new .. token)
      redis.call('SADD', p .. 'removed', token)
    end
  end
  for _, name in ipairs({ 'session:', 'history:', 'own:' }) do redis.call('UNLINK', p .. name .. session) end
  redis.call('ZREM', p .. 'idle', session)
  local owner = string.match(session, '^(%S+) ')
  if owner then redis.call('SREM', p .. 'sessions-of:' .. owner, session) end
  clear(token, most)
end
`;

/** ARGV: a run. Returns 0 where it is not final. */
export const removeRun = script<(run_id: string) => number>(`${dropRun}
local id = ARGV[1]
${finalStatusesInLua}
local run = redis.call('HMGET', p .. 'run:' .. id, 'status', 'session')
local status, session = run[1], run[2]
if status and not final[status] then return 0 end
for _, resource in ipairs(redis.call('SMEMBERS', p .. 'made:' .. id)) do
  redis.call('UNLINK', p .. 'resource:' .. resource)
  if session then
    redis.call('SREM', p .. 'kept:' .. session, resource)
    redis.call('ZREM', p .. 'history:' .. session, '/resources/' .. resource)
  end
end
drop_deliveries(id)
drop_run(id)
return 1
`);

/** ARGV: a session, and how many items to delete now. Returns 0 where one of its runs is not final. */
export const removeSession = script<(session_id: string, limit: number) => number>(`${dropSession}
if redis.call('ZCARD', p .. 'unfinished:' .. ARGV[1]) > 0 then return 0 end
drop_session(ARGV[1], ARGV[2])
return 1
`);

/** Deletes an Idempotency-Key by its field, which is the JSON of its scope and key. */
const dropKey = `
local function drop_key(name)
  redis.call('HDEL', p .. 'keys', name)
  redis.call('ZREM', p .. 'keys:age', name)
  local owner = string.match(name, '^%["([^" ]+) ')
  if owner then redis.call('SREM', p .. 'keys-of:' .. owner, name) end
end
`;

/** ARGV: an owner, and how many items to delete now. Returns the number of deleted items. */
export const removeOwner = script<(owner: string, limit: number) => number>(`
local p = KEYS[1]
${deliveryLines}${dropDeliveries}${dropKey}
redis.call('UNLINK', p .. 'figures-of:' .. ARGV[1])
local keys = redis.call('SRANDMEMBER', p .. 'keys-of:' .. ARGV[1], ARGV[2])
for _, name in ipairs(keys) do drop_key(name) end
local deliveries = redis.call('ZRANGE', p .. 'deliveries:owner:' .. ARGV[1], 0, ARGV[2] - 1)
for _, id in ipairs(deliveries) do drop_delivery(id) end
local urls = redis.call('HRANDFIELD', p .. 'failing:' .. ARGV[1], ARGV[2])
for _, url in ipairs(urls) do forget_failures(ARGV[1], url) end
return #keys + #deliveries + #urls
`);

/**
 * ARGV: the times in milliseconds before which runs, keys and sessions are old; the largest number of runs and keys to
 * delete, and of sessions to examine; the time before which deliveries and failures of URLs are old. Returns the number of items found.
 */
export const sweep = script<
  (runs: number, keys: number, sessions: number, limit: number, sessionLimit: number, deliveries: number) => number
>(`${dropSession}${dropKey}
local function older(list, time, most)
  return redis.call('ZRANGEBYSCORE', p .. list, '-inf', '(' .. time, 'LIMIT', 0, most)
end
local found = 0
local token = redis.call('SRANDMEMBER', p .. 'removed')
if token then found = found + 1 + clear(token, ARGV[4]) end
local runs = older('ended', ARGV[1], ARGV[4])
for _, id in ipairs(runs) do drop_run(id) end
local keys = older('keys:age', ARGV[2], ARGV[4])
for _, name in ipairs(keys) do drop_key(name) end
local sessions = older('idle', ARGV[3], ARGV[5])
for _, session in ipairs(sessions) do
  if redis.call('EXISTS', p .. 'of:' .. session) == 1 then
    -- It has other runs. It becomes a candidate again when one of them is deleted.
    redis.call('ZREM', p .. 'idle', session)
  else
    drop_session(session, ARGV[4])
  end
end
local deliveries = older('deliveries:ended', ARGV[6], ARGV[4])
for _, id in ipairs(deliveries) do drop_delivery(id) end
local failing = older('failing', ARGV[6], ARGV[4])
for _, name in ipairs(failing) do
  local owner, url = string.match(name, '^(%S*) (.*)$')
  forget_failures(owner, url)
end
return found + #runs + #keys + #sessions + #deliveries + #failing
`);
