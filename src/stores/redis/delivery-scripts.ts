import { deliveryColumns } from '../delivery-columns.ts';
import { script } from './script.ts';

// Scripts of the outbox; see `layout.ts` for the keys.

/** The columns of a delivery as scripts return them. */
export type DeliveryValues = readonly (string | null)[];

const columns = deliveryColumns.map((column) => `'${column}'`).join(', ');

/** Functions for lines and lists of deliveries. They need the prefix `p`. */
export const deliveryLines = `
local function line_of(run, url) return p .. 'line:' .. run .. ':' .. redis.sha1hex(url) end

local function state_sets(owner, state)
  local sets = { p .. 'deliveries:state:' .. state }
  if owner then sets[2] = p .. 'deliveries:owner-state:' .. owner .. ':' .. state end
  return sets
end

local function set_state(id, owner, before, state)
  redis.call('HSET', p .. 'delivery:' .. id, 'state', state)
  for _, set in ipairs(state_sets(owner, before)) do redis.call('ZREM', set, id) end
  for _, set in ipairs(state_sets(owner, state)) do redis.call('ZADD', set, 0, id) end
end

-- Adds a delivery to the end of its line. Only the first of a line can be claimed.
local function queue(id, line, due)
  if redis.call('RPUSH', line, id) == 1 then redis.call('ZADD', p .. 'deliveries:due', due, id) end
end

local function leave_line(id, line)
  redis.call('LREM', line, 1, id)
  redis.call('ZREM', p .. 'deliveries:due', id)
  local first = redis.call('LINDEX', line, 0)
  local due = first and redis.call('HGET', p .. 'delivery:' .. first, 'due')
  if due then redis.call('ZADD', p .. 'deliveries:due', 'NX', due, first) end
end
`;

/** A function for the failures of URLs. It needs the prefix `p`. */
const forget = `
local function forget_failures(owner, url)
  redis.call('HDEL', p .. 'failing:' .. (owner or ''), url)
  redis.call('ZREM', p .. 'failing', (owner or '') .. ' ' .. url)
end
`;

/** Functions that delete deliveries and failures of URLs; they need those above. */
export const dropDeliveries = `${forget}
local function drop_delivery(id)
  local one = redis.call('HMGET', p .. 'delivery:' .. id, 'run_id', 'owner', 'url', 'state')
  local run, owner, url, state = one[1], one[2], one[3], one[4]
  if run and url then leave_line(id, line_of(run, url)) end
  local sets = state and state_sets(owner, state) or {}
  for _, name in ipairs({ 'deliveries', 'deliveries:ended' }) do table.insert(sets, p .. name) end
  if run then table.insert(sets, p .. 'deliveries:run:' .. run) end
  if owner then table.insert(sets, p .. 'deliveries:owner:' .. owner) end
  for _, set in ipairs(sets) do redis.call('ZREM', set, id) end
  redis.call('UNLINK', p .. 'delivery:' .. id)
end

local function drop_deliveries(run)
  for _, id in ipairs(redis.call('ZRANGE', p .. 'deliveries:run:' .. run, 0, -1)) do drop_delivery(id) end
end
`;

/** For the commit script: adds the deliveries of a write. */
export const putDeliveries = `${deliveryLines}
local function has_known_delivery(w)
  for _, one in ipairs(w.deliveries) do
    if redis.call('EXISTS', p .. 'delivery:' .. one.id) == 1 then return true end
  end
  return false
end

local function put_deliveries(w)
  for _, one in ipairs(w.deliveries) do
    redis.call('HSET', p .. 'delivery:' .. one.id, 'due', one.due, unpack(one.fields))
    local sets = state_sets(w.owner, 'pending')
    for _, name in ipairs({ 'deliveries', 'deliveries:run:' .. w.run_id }) do table.insert(sets, p .. name) end
    if w.owner then table.insert(sets, p .. 'deliveries:owner:' .. w.owner) end
    for _, set in ipairs(sets) do redis.call('ZADD', set, 0, one.id) end
    queue(one.id, line_of(w.run_id, one.url), one.due)
  end
end
`;

/** ARGV: the time now, and until when to claim, in milliseconds; the latter as text; the largest number. */
export const claimDeliveries = script<
  (now: number, until: number, untilText: string, limit: number) => DeliveryValues[]
>(`
local p, found = KEYS[1], {}
local due = p .. 'deliveries:due'
for _, id in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', ARGV[1], 'LIMIT', 0, ARGV[4])) do
  local key = p .. 'delivery:' .. id
  if redis.call('EXISTS', key) == 1 then
    redis.call('ZADD', due, ARGV[2], id)
    redis.call('HSET', key, 'claimed_until', ARGV[3])
    found[#found + 1] = redis.call('HMGET', key, ${columns})
  else
    -- Damaged data must not keep the others from being sent.
    redis.call('ZREM', due, id)
  end
end
return found
`);

/**
 * ARGV: a delivery; until when it was claimed; its new state; the status and the error of the attempt, each empty for
 * none; when it is due again, as text and in milliseconds; when the attempt ended, the same, empty without one. Returns
 * 0 where the claim is over.
 */
export const finishDelivery = script<
  (
    delivery_id: string,
    claimed_until: string,
    state: string,
    status: string,
    error: string,
    nextText: string,
    next: number,
    attemptedText: string,
    attempted: number,
  ) => number
>(`
local p = KEYS[1]
${deliveryLines}${forget}
local function add_failure(owner, url, at, score)
  local all = p .. 'failing:' .. (owner or '')
  local attempts, since, last = string.match(redis.call('HGET', all, url) or '', '^(%S+) (%S+) (%S+)$')
  if last and last > at then at = last end
  redis.call('HSET', all, url, table.concat({ (attempts or 0) + 1, since or at, at }, ' '))
  redis.call('ZADD', p .. 'failing', 'GT', score, (owner or '') .. ' ' .. url)
end

local id, state = ARGV[1], ARGV[3]
local key = p .. 'delivery:' .. id
local one = redis.call('HMGET', key, 'claimed_until', 'run_id', 'owner', 'url', 'due')
if one[1] ~= ARGV[2] then return 0 end
if ARGV[8] ~= '' then redis.call('HINCRBY', key, 'attempt', 1) end
redis.call('HDEL', key, 'claimed_until', 'last_status', 'last_error')
if ARGV[4] ~= '' then redis.call('HSET', key, 'last_status', ARGV[4]) end
if ARGV[5] ~= '' then redis.call('HSET', key, 'last_error', ARGV[5]) end
if state == 'pending' then
  redis.call('HSET', key, 'next_at', ARGV[6], 'due', ARGV[7])
  redis.call('ZADD', p .. 'deliveries:due', ARGV[7], id)
else
  leave_line(id, line_of(one[2], one[4]))
  set_state(id, one[3], 'pending', state)
  redis.call('ZADD', p .. 'deliveries:ended', redis.call('HGET', key, 'age'), id)
end
if state == 'delivered' then
  forget_failures(one[3], one[4])
elseif ARGV[8] ~= '' then
  add_failure(one[3], one[4], ARGV[8], ARGV[9])
end
return 1
`);

/** ARGV: a delivery; when it is due, as text and in milliseconds. Returns 0 where it is pending or unknown. */
export const replayDelivery = script<(delivery_id: string, nowText: string, now: number) => number>(`
local p = KEYS[1]
${deliveryLines}${forget}
local id = ARGV[1]
local key = p .. 'delivery:' .. id
local one = redis.call('HMGET', key, 'state', 'run_id', 'owner', 'url')
if not one[1] or one[1] == 'pending' then return 0 end
redis.call('HSET', key, 'attempt', 0, 'next_at', ARGV[2], 'due', ARGV[3])
redis.call('ZREM', p .. 'deliveries:ended', id)
set_state(id, one[3], one[1], 'pending')
queue(id, line_of(one[2], one[4]), ARGV[3])
forget_failures(one[3], one[4])
return 1
`);

/** ARGV: an owner, empty for none, and a URL. */
export const forgetFailures = script<(owner: string, url: string) => null>(`
local p = KEYS[1]
${forget}
forget_failures(ARGV[1], ARGV[2])
`);

/**
 * ARGV: a set; before which id; the largest number of deliveries to examine; an owner and a state to filter by, each
 * empty for any. Returns the id at which it stopped, empty at the end of the set, and the deliveries.
 */
export const listDeliveries = script<
  (set: string, from: string, limit: number, owner: string, state: string) => [string, DeliveryValues[]]
>(`
local p, found = KEYS[1], {}
local ids = redis.call('ZREVRANGEBYLEX', p .. ARGV[1], ARGV[2], '-', 'LIMIT', 0, ARGV[3])
for _, id in ipairs(ids) do
  local key = p .. 'delivery:' .. id
  local one = redis.call('HMGET', key, 'owner', 'state')
  if (ARGV[4] == '' or ARGV[4] == one[1]) and (ARGV[5] == '' or ARGV[5] == one[2]) then
    found[#found + 1] = redis.call('HMGET', key, ${columns})
  end
end
return { #ids == tonumber(ARGV[3]) and ids[#ids] or '', found }
`);
