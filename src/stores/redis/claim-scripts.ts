import { finalStatusesInLua, script } from './script.ts';

// Scripts of claims; see `layout.ts` for the keys.

/**
 * Functions for the nodes of runs. They need the prefix `p`. A run that is not final has a node, or waits in one of the
 * lists, or needs none.
 */
export const nodeFunctions = `
local function milliseconds()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Adds a run without a node to the list of its agent. A run that needs no agent is in the list for any node.
local function wait_for_node(id, agent, needs_agent)
  redis.call('ZADD', p .. (needs_agent == '1' and 'waiting:' .. agent or 'waiting'), 0, id)
end

-- Takes a run from its node; without one, from the list in which it may wait.
local function detach(id, agent, node)
  if node then
    redis.call('HDEL', p .. 'run:' .. id, 'node')
    redis.call('ZREM', p .. 'held:' .. node, id)
  else
    redis.call('ZREM', p .. 'waiting', id)
    if agent then redis.call('ZREM', p .. 'waiting:' .. agent, id) end
  end
end

-- Gives a run to a node. One without a lease becomes known as dead, so that its runs are found.
local function attach(id, node)
  redis.call('HSET', p .. 'run:' .. id, 'node', node)
  redis.call('ZADD', p .. 'held:' .. node, 0, id)
  redis.call('ZADD', p .. 'nodes', 'NX', 0, node)
end
`;

/** ARGV: a node, and for how many milliseconds it lives. */
export const renewLease = script<(node: string, milliseconds: number) => null>(`
local p = KEYS[1]
${nodeFunctions}
redis.call('ZADD', p .. 'nodes', milliseconds() + ARGV[2], ARGV[1])
`);

/** ARGV: a node. */
export const endLease = script<(node: string) => null>(`
local p = KEYS[1]
${nodeFunctions}
redis.call('ZADD', p .. 'nodes', 'XX', milliseconds(), ARGV[1])
`);

/**
 * ARGV: a node; the largest number of runs to claim; the largest number of dead nodes and their runs to examine; the
 * agents of the node. Returns the ids of the claimed runs. The runs of dead nodes wait first, like all others: so a run
 * whose agent is at no node is examined only once.
 */
export const claimRuns = script<
  (node: string, limit: number, examined: number, ...agents: readonly string[]) => string[]
>(`
local p, claimed = KEYS[1], {}
${nodeFunctions}
local left = tonumber(ARGV[3])
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', p .. 'nodes', '-inf', milliseconds(), 'LIMIT', 0, left)) do
  if left < 1 then break end
  if dead ~= ARGV[1] then
    local held = redis.call('ZRANGE', p .. 'held:' .. dead, 0, left - 1)
    for _, id in ipairs(held) do
      local run = redis.call('HMGET', p .. 'run:' .. id, 'agent', 'needs_agent')
      detach(id, run[1], dead)
      if run[1] then wait_for_node(id, run[1], run[2]) end
    end
    if #held < left then redis.call('ZREM', p .. 'nodes', dead) end
    left = left - #held - 1
  end
end

local lists, oldest = { p .. 'waiting' }, {}
for i = 4, #ARGV do lists[#lists + 1] = p .. 'waiting:' .. ARGV[i] end
local function look(n) oldest[n] = redis.call('ZRANGE', lists[n], 0, 0)[1] or false end
for n in ipairs(lists) do look(n) end
for _ = 1, tonumber(ARGV[2]) do
  local first
  for n, id in ipairs(oldest) do
    if id and (not first or id < oldest[first]) then first = n end
  end
  if not first then break end
  local id = oldest[first]
  -- Damaged data may have lost the run.
  if redis.call('ZREM', lists[first], id) == 1 and redis.call('EXISTS', p .. 'run:' .. id) == 1 then
    attach(id, ARGV[1])
    claimed[#claimed + 1] = id
  end
  look(first)
end
return claimed
`);

/** ARGV: a node, and runs. Returns the ids of those that it has then. */
export const takeRuns = script<(node: string, ...run_ids: readonly string[]) => string[]>(`
local p, taken = KEYS[1], {}
${nodeFunctions}
${finalStatusesInLua}
local now = milliseconds()
local function lives(node) return tonumber(redis.call('ZSCORE', p .. 'nodes', node) or 0) > now end

for i = 2, #ARGV do
  local id = ARGV[i]
  local run = redis.call('HMGET', p .. 'run:' .. id, 'status', 'agent', 'node')
  local status, agent, node = run[1], run[2], run[3]
  if status and not final[status] and (not node or node == ARGV[1] or not lives(node)) then
    if node ~= ARGV[1] then
      detach(id, agent, node)
      attach(id, ARGV[1])
    end
    taken[#taken + 1] = id
  end
end
return taken
`);

/** ARGV: a node, and runs. */
export const freeRuns = script<(node: string, ...run_ids: readonly string[]) => null>(`
local p = KEYS[1]
${finalStatusesInLua}
${nodeFunctions}
for i = 2, #ARGV do
  local id = ARGV[i]
  local run = redis.call('HMGET', p .. 'run:' .. id, 'agent', 'node', 'needs_node', 'needs_agent', 'status')
  if run[2] == ARGV[1] then
    detach(id, run[1], run[2])
    if run[3] == '1' and not final[run[5]] then wait_for_node(id, run[1], run[4]) end
  end
end
`);

/**
 * ARGV: the layout of the stored data; the layout to set, empty for none yet; then runs, each with `needs_node` and
 * `needs_agent`. Does nothing where another process has set a layout: runs have got nodes since.
 */
export const upgradeRuns = script<(from: number, to: number | '', ...runs: readonly string[]) => null>(`
local p = KEYS[1]
${nodeFunctions}
if redis.call('GET', p .. 'version') ~= ARGV[1] then return end
for i = 3, #ARGV, 3 do
  local id, run = ARGV[i], p .. 'run:' .. ARGV[i]
  redis.call('HSET', run, 'needs_node', ARGV[i + 1], 'needs_agent', ARGV[i + 2])
  if ARGV[i + 1] == '1' then wait_for_node(id, redis.call('HGET', run, 'agent'), ARGV[i + 2]) end
end
if ARGV[2] ~= '' then redis.call('SET', p .. 'version', ARGV[2]) end
`);
