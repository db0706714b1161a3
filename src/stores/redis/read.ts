/**
 * Batches of a log. ARGV: the run, the first event, how many batches, and after how many bytes the page ends. Few
 * entries are read first: with the first one, a page of a log of long lines is full.
 */
export const page = `
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

/**
 * Rows of runs in a list. ARGV: the command that reads the list, its name, from and to where; how many rows are wanted,
 * how many runs are looked at; then an agent, a session and a status that the runs have to be of, each empty for any.
 * Answers the id at which it has stopped, empty at the end of the list, and of each run the row and its `last`.
 */
export const list = `
local p, found = KEYS[1], {}
local wanted, most = tonumber(ARGV[5]), tonumber(ARGV[6])
local ids = redis.call(ARGV[1], p .. ARGV[2], ARGV[3], ARGV[4], 'LIMIT', 0, most)
for n, id in ipairs(ids) do
  local run = redis.call('HMGET', p .. 'run:' .. id, 'row', 'last', 'agent', 'session', 'status')
  local fits = run[1] and run[2]
  for i = 1, 3 do fits = fits and (ARGV[6 + i] == '' or ARGV[6 + i] == run[2 + i]) end
  if fits then found[#found + 1] = { run[1], run[2] } end
  if #found == wanted then return { id, found } end
end
return { #ids == most and ids[most] or '', found }
`;
