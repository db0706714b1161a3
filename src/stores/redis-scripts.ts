import type { Redis, Result } from 'ioredis';

// What is kept under which name; all names begin with the store's prefix. It is a hash tag, so that a cluster
// keeps all of it in one slot, where a script may touch it.
//
//   run:ID             hash    row (JSON), last, epoch, status, agent, session, input (JSON)
//   log:ID             stream  an entry is a batch: its id is that of its last event, its field `b` the lines
//   journal:ID         list    lines, as they were written
//   made:ID            set     the resources that go when the run goes
//   runs, agent:NAME, status:STATUS, of:SESSION, unfinished
//                      zset    ids of runs, all with the score 0: by name, which is by time
//   busy:SESSION       set     ids of its runs that have begun, so are not queued, and are not over
//   due, ended         zset    ids of runs by that time, in milliseconds
//   session:ID         hash    state, urls (how many were ever added)
//   history:ID         zset    URLs by the order in which they came
//   kept:ID            set     the session's resources
//   resource:ID        string  JSON
//   keys               hash    JSON of each Idempotency-Key
//   keys:age           zset    the same by time
//   figures:AGENT      hash    completed, failed, tokens, seconds
//   commit:WRITER      string  the number of an open store's last parcel, and for each of its writes 1 or 0; for a day
//
// What was taken is published on the channel `moved`, a line for each write: epoch, last, 1 where the run
// is over, run_id.
//
// KEYS[1] is the prefix. A script is atomic, but it is not undone when it fails; so each looks first, and begins to
// write with a command that Redis refuses where its memory is full. After that nothing is refused any more.

const take = `
local p = KEYS[1]
local over = { completed = true, failed = true, cancelled = true }

local function put_row(w, run, before)
  local id = w.run_id
  redis.call('HSET', run, 'row', w.row, 'epoch', w.epoch, 'last', w.last, 'status', w.status)
  if w.input then
    redis.call('HSET', run, 'input', w.input, 'agent', w.agent, 'session', w.session)
    redis.call('ZADD', p .. 'runs', 0, id)
    redis.call('ZADD', p .. 'agent:' .. w.agent, 0, id)
    redis.call('ZADD', p .. 'of:' .. w.session, 0, id)
  end
  if before ~= w.status then
    if before then redis.call('ZREM', p .. 'status:' .. before, id) end
    redis.call('ZADD', p .. 'status:' .. w.status, 0, id)
  end
  if w.ended then
    redis.call('ZREM', p .. 'unfinished', id)
    redis.call('ZADD', p .. 'ended', w.ended, id)
  else
    redis.call('ZADD', p .. 'unfinished', 0, id)
  end
  redis.call((w.ended or w.queued) and 'SREM' or 'SADD', p .. 'busy:' .. w.session, id)
  if w.due then redis.call('ZADD', p .. 'due', w.due, id) else redis.call('ZREM', p .. 'due', id) end
end

local function put_session(w)
  local session = p .. 'session:' .. w.session
  redis.call('HSETNX', session, 'urls', 0)
  for _, url in ipairs(w.history or {}) do
    redis.call('ZADD', p .. 'history:' .. w.session, 'NX', redis.call('HINCRBY', session, 'urls', 1), url)
  end
  if w.state then redis.call('HSET', session, 'state', w.state) end
end

local function take(w, body)
  local run = p .. 'run:' .. w.run_id
  local kept = redis.call('HMGET', run, 'epoch', 'last', 'status')
  if w.input then
    if kept[1] then return false end
  elseif kept[1] ~= w.from or kept[2] ~= w.expect or over[kept[3]] then
    return false
  end
  if w.key then
    local age = redis.call('ZSCORE', p .. 'keys:age', w.key.name)
    if age and tonumber(age) >= w.key.fresh then return false end
  end
  if w.alone then
    local busy = p .. 'busy:' .. w.session
    if redis.call('SCARD', busy) > redis.call('SISMEMBER', busy, w.run_id) then return false end
  end
  if w.row then put_row(w, run, kept[3]) else redis.call('HSET', run, 'last', w.last) end
  if body ~= '' then redis.call('XADD', p .. 'log:' .. w.run_id, w.last .. '-0', 'b', body) end
  if w.journal then redis.call('RPUSH', p .. 'journal:' .. w.run_id, w.journal) end
  if w.key then
    redis.call('HSET', p .. 'keys', w.key.name, w.key.text)
    redis.call('ZADD', p .. 'keys:age', w.key.age, w.key.name)
  end
  if w.history or w.state then put_session(w) end
  for _, one in ipairs(w.resources or {}) do
    redis.call('SET', p .. 'resource:' .. one.id, one.text)
    redis.call('SADD', p .. 'kept:' .. one.session, one.id)
    if one.run then redis.call('SADD', p .. 'made:' .. one.run, one.id) end
  end
  if w.figures then
    local sums = p .. 'figures:' .. w.agent
    if w.figures.ended then redis.call('HINCRBY', sums, w.figures.ended, 1) end
    redis.call('HINCRBYFLOAT', sums, 'tokens', w.figures.tokens)
    redis.call('HINCRBYFLOAT', sums, 'seconds', w.figures.seconds)
  end
  return true
end

local commit, number = p .. 'commit:' .. ARGV[1], tonumber(ARGV[2])
local kept = redis.call('GET', commit)
if kept then
  local last, answer = string.match(kept, '^(%d+) (%d+)$')
  -- It has come before, and its answer has not arrived.
  if tonumber(last) == number then return answer end
  -- Nobody waits for it any more: it was sent again long ago, while this copy was on its way.
  if tonumber(last) > number then return redis.error_reply('ERR a parcel that is out of date') end
end
local taken, moved, lines = {}, {}, 0
for i, w in ipairs(cjson.decode(ARGV[3])) do
  if take(w, ARGV[i + 3]) then
    taken[i] = '1'
    lines = lines + 1
    moved[lines] = (w.epoch or w.from) .. ' ' .. w.last .. (over[w.status] and ' 1 ' or ' 0 ') .. w.run_id
  else
    taken[i] = '0'
  end
end
local answer = table.concat(taken)
redis.call('SET', commit, number .. ' ' .. answer, 'EX', 86400)
-- A user who may not publish may write all the same.
if lines > 0 then redis.pcall('PUBLISH', p .. 'moved', table.concat(moved, '\\n')) end
return answer
`;

/** Few entries first: with the first one, a page of a log of long lines is full. */
const page = `
local log, found, chars, count = KEYS[1] .. 'log:' .. ARGV[1], {}, 0, 1
local from = ARGV[2] .. '-0'
while true do
  local entries = redis.call('XRANGE', log, from, '+', 'COUNT', count)
  for _, entry in ipairs(entries) do
    local body = entry[2][2]
    found[#found + 1] = { entry[1], body }
    chars = chars + #body
    from = '(' .. entry[1]
    if #found >= tonumber(ARGV[3]) or chars >= tonumber(ARGV[4]) then return found end
  end
  if #entries < count then return found end
  count = math.min(count * 2, 64)
end
`;

const list = `
local rows = {}
for i, id in ipairs(redis.call(ARGV[1], KEYS[1] .. ARGV[2], ARGV[3], ARGV[4], 'LIMIT', 0, ARGV[5])) do
  rows[i] = redis.call('HMGET', KEYS[1] .. 'run:' .. id, 'row', 'last')
end
return rows
`;

/** Takes a run away, and its log, which Redis clears in the background; its messages stay in the session. */
const drop = `
local p = KEYS[1]
local function drop(id)
  local run = redis.call('HMGET', p .. 'run:' .. id, 'agent', 'status', 'session')
  if not run[1] then return end
  local lists = { 'runs', 'unfinished', 'due', 'ended', 'agent:' .. run[1], 'status:' .. run[2], 'of:' .. run[3] }
  for _, name in ipairs(lists) do redis.call('ZREM', p .. name, id) end
  redis.call('SREM', p .. 'busy:' .. run[3], id)
  for _, name in ipairs({ 'run:', 'log:', 'journal:', 'made:' }) do redis.call('UNLINK', p .. name .. id) end
end
`;

const removeRun = `${drop}
local id = ARGV[1]
local session = redis.call('HGET', p .. 'run:' .. id, 'session')
if not session then return end
for _, one in ipairs(redis.call('SMEMBERS', p .. 'made:' .. id)) do
  redis.call('UNLINK', p .. 'resource:' .. one)
  redis.call('SREM', p .. 'kept:' .. session, one)
  redis.call('ZREM', p .. 'history:' .. session, '/resources/' .. one)
end
drop(id)
`;

const removeSession = `${drop}
local session = ARGV[1]
for _, id in ipairs(redis.call('ZRANGE', p .. 'of:' .. session, 0, -1)) do drop(id) end
for _, one in ipairs(redis.call('SMEMBERS', p .. 'kept:' .. session)) do
  redis.call('UNLINK', p .. 'resource:' .. one)
end
for _, name in ipairs({ 'session:', 'history:', 'kept:', 'of:' }) do redis.call('UNLINK', p .. name .. session) end
`;

const sweep = `${drop}
local old = redis.call('ZRANGEBYSCORE', p .. 'ended', '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[3])
for _, id in ipairs(old) do drop(id) end
local keys = redis.call('ZRANGEBYSCORE', p .. 'keys:age', '-inf', '(' .. ARGV[2], 'LIMIT', 0, ARGV[3])
for _, name in ipairs(keys) do
  redis.call('HDEL', p .. 'keys', name)
  redis.call('ZREM', p .. 'keys:age', name)
end
return #old + #keys
`;

type Range = 'ZRANGEBYLEX' | 'ZREVRANGEBYLEX' | 'ZRANGEBYSCORE';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** For each write, 1 where it was taken and 0 where not. */
    rivuletTake(
      prefix: string,
      writer: string,
      number: number,
      writes: string,
      ...bodies: readonly string[]
    ): Result<string, Context>;
    /** Batches from an event on: the stream's id and the lines. Ends after `limit` batches or `bytes`. */
    rivuletPage(
      prefix: string,
      run_id: string,
      from: number,
      limit: number,
      bytes: number,
    ): Result<[string, string][], Context>;
    /** Rows and `last` of the runs in a part of a zset. */
    rivuletList(
      prefix: string,
      range: Range,
      name: string,
      from: string,
      to: string,
      limit: number,
    ): Result<[string, string][], Context>;
    rivuletRemove(prefix: string, run_id: string): Result<null, Context>;
    rivuletRemoveSession(prefix: string, session_id: string): Result<null, Context>;
    /** How many runs and keys are gone that were from before these times, in milliseconds. */
    rivuletSweep(prefix: string, runs: number, keys: number, limit: number): Result<number, Context>;
  }
}

/** Gives a client the commands above. */
export function defineScripts(redis: Redis): void {
  const scripts = {
    rivuletTake: take,
    rivuletPage: page,
    rivuletList: list,
    rivuletRemove: removeRun,
    rivuletRemoveSession: removeSession,
    rivuletSweep: sweep,
  };
  for (const [name, lua] of Object.entries(scripts)) redis.defineCommand(name, { lua, numberOfKeys: 1 });
}
