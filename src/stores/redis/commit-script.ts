import { allChanges } from '../../core/ports/run-store.ts';
import { nodeFunctions } from './claim-scripts.ts';
import { putDeliveries } from './delivery-scripts.ts';
import { putKey } from './key-scripts.ts';
import { finalStatusesInLua, script } from './script.ts';

/**
 * Applies the writes of a commit. KEYS[1]: the prefix. ARGV: the id of the writing store, the number of the commit, the
 * writes as JSON (see `encodeWrite`), and the events of each write. Returns a letter for each write: t(aken), f(enced),
 * k(ey used), s(ession busy), d(elivery known), c(hanged targets), r(ejected).
 *
 * A script is atomic, but Redis does not undo it when it fails. So the script checks each write before it applies any
 * part of it. Redis refuses a script (memory full, too few replicas) at its first command that writes, and not later.
 */
export const commitScript = script<
  (writer: string, number: number, writes: string, ...bodies: readonly string[]) => string
>(`
local p = KEYS[1]
${finalStatusesInLua}
local has_written = false

-- Whether the unfinished runs of the session, ordered by id, violate the condition of a write.
local function is_busy(w)
  local unfinished = p .. 'unfinished:' .. w.session
  local older = w.when ~= 'last' and redis.call('ZLEXCOUNT', unfinished, '-', '(' .. w.run_id) or 0
  local younger = w.when ~= 'first' and redis.call('ZLEXCOUNT', unfinished, '(' .. w.run_id, '+') or 0
  return older + younger > 0
end

${nodeFunctions}
-- A run that has ended has no node, and waits for none.
local function put_node(w, before)
  local node = not w.ended and (w.node or before) or ''
  if node ~= '' and node == before then return end
  if not w.input then detach(w.run_id, w.agent, before) end
  if node ~= '' then
    attach(w.run_id, node)
  elseif w.needs_node == '1' then
    wait_for_node(w.run_id, w.agent, w.needs_agent)
  end
end

local function put_row(w, run, before)
  local id = w.run_id
  redis.call('HSET', run, 'row', w.row, 'epoch', w.epoch, 'status', w.status, 'needs_node', w.needs_node, 'needs_agent', w.needs_agent)
  if w.input then
    if w.targets then redis.call('HSET', run, 'targets', w.targets) end
    redis.call('HSET', run, 'input', w.input, 'agent', w.agent, 'session', w.session)
    redis.call('SADD', p .. 'agents', w.agent)
    if w.owner then
      redis.call('HSET', run, 'owner', w.owner)
      redis.call('ZADD', p .. 'owner:' .. w.owner, 0, id)
    end
    for _, name in ipairs({ 'runs', 'agent:' .. w.agent, 'of:' .. w.session }) do
      redis.call('ZADD', p .. name, 0, id)
    end
  end
  if before ~= w.status then
    local lists = { 'status:', 'agent-status:' .. w.agent .. ':' }
    if w.owner then lists[3] = 'owner-status:' .. w.owner .. ':' end
    for _, list in ipairs(lists) do
      if before then redis.call('ZREM', p .. list .. before, id) end
      redis.call('ZADD', p .. list .. w.status, 0, id)
    end
  end
  local times = { 'at:' .. w.agent .. ':' }
  if w.owner then times[2] = 'at-of:' .. w.owner .. ':' .. w.agent .. ':' end
  for _, list in ipairs(times) do
    if before and before ~= w.status then redis.call('ZREM', p .. list .. before, id) end
    redis.call('ZADD', p .. list .. w.status, w.status_at, id)
  end
  if w.ended then redis.call('ZADD', p .. 'ended', w.ended, id) end
  if w.ended or w.input then
    for _, name in ipairs({ 'unfinished', 'unfinished:' .. w.session }) do
      if w.ended then redis.call('ZREM', p .. name, id) else redis.call('ZADD', p .. name, 0, id) end
    end
  end
  if w.due then redis.call('ZADD', p .. 'due', w.due, id) else redis.call('ZREM', p .. 'due', id) end
  if w.parked then redis.call('ZADD', p .. 'parked', 0, id) else redis.call('ZREM', p .. 'parked', id) end
end

local function put_resource(resource)
  redis.call('SET', p .. 'resource:' .. resource.id, resource.text)
  redis.call('SADD', p .. 'kept:' .. resource.session, resource.id)
  if resource.run then
    redis.call('SADD', p .. 'made:' .. resource.run, resource.id)
  else
    redis.call('SADD', p .. 'own:' .. resource.session, resource.id)
  end
end

local function put_session(w)
  local session = p .. 'session:' .. w.session
  if redis.call('HSETNX', session, 'urls', 0) == 1 and w.owner then
    redis.call('SADD', p .. 'sessions-of:' .. w.owner, w.session)
  end
  for _, url in ipairs(w.history or {}) do
    redis.call('ZADD', p .. 'history:' .. w.session, 'NX', redis.call('HINCRBY', session, 'urls', 1), url)
  end
  if not w.state then return end
  local before = redis.call('HGET', session, 'state')
  redis.call('HSET', session, 'state', w.state)
  if not before or before == w.state then return end
  -- Only a state of this session is deleted: the URL may be that of a message, or of another session.
  local id = string.match(before, '^/resources/(.*)$')
  if id and redis.call('SREM', p .. 'own:' .. w.session, id) == 1 then
    redis.call('SREM', p .. 'kept:' .. w.session, id)
    redis.call('UNLINK', p .. 'resource:' .. id)
  end
end

-- Adds to the sums of a hash, whose fields end with the suffix.
local function put_figures(figures, sums, suffix)
  if figures.ended then redis.call('HINCRBY', sums, figures.ended .. suffix, 1) end
  for _, name in ipairs({ 'tokens', 'seconds' }) do
    local field = name .. suffix
    local sum = tonumber(redis.call('HGET', sums, field) or 0) + tonumber(figures[name])
    -- A sum must not overflow: readers could not parse infinity.
    redis.call('HSET', sums, field, string.format('%.17g', math.min(sum, 1.79e308)))
  end
end

${putDeliveries}${putKey}
local function apply(w, body)
  local run = p .. 'run:' .. w.run_id
  if w.key then
    local age = redis.call('ZSCORE', p .. 'keys:age', w.key.name)
    if age and tonumber(age) >= w.key.fresh then return 'k' end
    if redis.call('EXISTS', p .. 'refused:' .. w.run_id .. ':' .. w.key.name) == 1 then return 'k' end
  end
  if w.when and is_busy(w) then return 's' end
  local stored = redis.call('HMGET', run, 'epoch', 'last', 'status', 'targets', 'node')
  if w.input then
    if stored[1] then return 'f' end
  elseif stored[1] ~= w.from or stored[2] ~= w.expect or final[stored[3]] then
    return 'f'
  elseif w.row and body ~= '' and (stored[4] or nil) ~= w.targets then
    return 'c'
  end
  if w.deliveries and has_known_delivery(w) then return 'd' end
  if body ~= '' then redis.call('XADD', p .. 'log:' .. w.run_id, w.last .. '-0', 'b', body) end
  has_written = true
  redis.call('HSET', run, 'last', w.last)
  if w.row then
    put_row(w, run, stored[3])
    put_node(w, stored[5])
  end
  if w.journal then redis.call('RPUSH', p .. 'journal:' .. w.run_id, w.journal) end
  if w.key then put_key(w.key) end
  for _, resource in ipairs(w.resources or {}) do put_resource(resource) end
  if w.history or w.state then put_session(w) end
  if w.deliveries then put_deliveries(w) end
  if w.figures then
    put_figures(w.figures, p .. 'figures:' .. w.agent, '')
    if w.owner then put_figures(w.figures, p .. 'figures-of:' .. w.owner, ':' .. w.agent) end
  end
  return 't'
end

local commit, number = p .. 'commit:' .. ARGV[1], tonumber(ARGV[2])
local known = redis.call('GET', commit)
if known then
  local last, answer = string.match(known, '^(%d+) (%a*)$')
  -- The commit was applied before, and its answer was lost.
  if tonumber(last) == number then return answer end
  -- A late copy: the store has sent the commit again since, and no longer awaits this answer.
  if tonumber(last) > number then return redis.error_reply('ERR a commit that is out of date') end
end
local is_json, writes = pcall(cjson.decode, ARGV[3])
if not is_json then return redis.error_reply('REJECTED ' .. tostring(writes)) end
local letters, for_all, changes, by_run = {}, {}, {}, {}
for i, w in ipairs(writes) do
  local is_fine, letter = pcall(apply, w, ARGV[i + 3])
  -- At the first command that writes, Redis may refuse the whole commit. A later error means that the data of this run
  -- or of its session is damaged, which does not concern the other writes.
  if not is_fine and not has_written then return error(letter) end
  letters[i] = is_fine and letter or 'r'
  if letters[i] == 't' then
    local kind = final[w.status] and '1' or w.waits and '4' or w.row and '2' or ARGV[i + 3] == '' and '3' or '0'
    local line = (w.epoch or w.from) .. ' ' .. w.last .. ' ' .. kind .. ' ' .. w.run_id
    if w.for_all then
      for_all[#for_all + 1] = line
    else
      if w.row then changes[#changes + 1] = line end
      by_run[w.run_id] = by_run[w.run_id] and by_run[w.run_id] .. '\\n' .. line or line
    end
  end
end
local answer = table.concat(letters)
redis.call('SET', commit, number .. ' ' .. answer, 'EX', 86400)
-- Without the permission to publish, commits still succeed.
if #for_all > 0 then redis.pcall('PUBLISH', p .. 'moved', table.concat(for_all, '\\n')) end
if #changes > 0 then redis.pcall('PUBLISH', p .. 'moved:${allChanges}', table.concat(changes, '\\n')) end
for run_id, lines in pairs(by_run) do redis.pcall('PUBLISH', p .. 'moved:' .. run_id, lines) end
return answer
`);
