-- Makes a reader the only one of a group on a stream, with all that is not acknowledged.
--
-- KEYS[1]  the stream
-- ARGV[1]  the group
-- ARGV[2]  the reader
-- ARGV[3]  what may be made: "stream" with its group, the "group" alone, or nothing
--
-- Returns how far the group has been read, and the ids of unacknowledged entries that are gone.

local function field(pairs_in_line, name)
  for i = 1, #pairs_in_line, 2 do
    if pairs_in_line[i] == name then
      return pairs_in_line[i + 1]
    end
  end
end

local function position()
  local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
  if groups.err then
    return nil, not string.find(groups.err, 'no such key', 1, true) and groups or nil
  end
  for _, group in ipairs(groups) do
    if field(group, 'name') == ARGV[1] then
      return field(group, 'last-delivered-id')
    end
  end
end

local read_to, failure = position()
if not read_to and not failure and ARGV[3] ~= '' then
  local create = {'XGROUP', 'CREATE', KEYS[1], ARGV[1], '0'}
  if ARGV[3] == 'stream' then
    create[#create + 1] = 'MKSTREAM'
  end
  local made = redis.pcall(unpack(create))
  if made.err then
    return made
  end
  read_to, failure = position()
end
if failure then
  return failure
end
if not read_to then
  return redis.error_reply('NOGROUP the stream or its consumer group is missing')
end

-- Reading nothing makes the reader known. (The very last id would stand for new entries.)
local beyond = '18446744073709551615-0'
local known = redis.pcall(
  'XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', '1', 'STREAMS', KEYS[1], beyond)
if known and known.err then
  return known
end

local gone = {}
local cursor = '0-0'
repeat
  local claimed = redis.pcall(
    'XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], '0', cursor, 'COUNT', '1000', 'JUSTID')
  if claimed.err then
    return claimed
  end
  cursor = claimed[1]
  for _, id in ipairs(claimed[3] or {}) do
    gone[#gone + 1] = id
  end
until cursor == '0-0'

for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local name = field(consumer, 'name')
  if name ~= ARGV[2] then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], name)
  end
end
return {read_to, gone}
