import { script } from './script.ts';

// Scripts of Idempotency-Keys; see `layout.ts` for the keys, and `key-pointers.ts` for pointers.

/** For the scripts that store a key, or a pointer to one. It needs the prefix `p`. */
export const putKey = `
local function put_key(key)
  redis.call('HSET', p .. 'keys', key.name, key.text)
  redis.call('ZADD', p .. 'keys:age', key.age, key.name)
  if key.owner then redis.call('SADD', p .. 'keys-of:' .. key.owner, key.name) end
end
`;

/** ARGV: a pointer as JSON, and the text that it replaces, empty for none. Returns the text that is there then. */
export const pointKey = script<(key: string, before: string) => string>(`
local p = KEYS[1]
${putKey}
local key = cjson.decode(ARGV[1])
local before = redis.call('HGET', p .. 'keys', key.name) or ''
if before ~= ARGV[2] then return before end
put_key(key)
return key.text
`);

/**
 * Refuses for a day a commit that would store a key. ARGV: the name of the key, and the commit's run. Returns the text of
 * the key, and refuses nothing, where the commit has stored it.
 */
export const refuseKey = script<(name: string, run_id: string) => string>(`
local p = KEYS[1]
local text = redis.call('HGET', p .. 'keys', ARGV[1])
if text and cjson.decode(text).run_id == ARGV[2] then return text end
redis.call('SET', p .. 'refused:' .. ARGV[2] .. ':' .. ARGV[1], '', 'EX', 86400)
return ''
`);
