-- Reads entries for a reader, if it is still the one that reads the stream for its group.
--
-- KEYS[1]  the stream
-- ARGV[1]  the group
-- ARGV[2]  the reader
-- ARGV[3]  how many entries at most
-- ARGV[4]  ">" for new entries, or the id after which unacknowledged ones are read again
--
-- Returns the entries, and for those that are read again what XPENDING says of them.

local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
if consumers.err then
  if string.find(consumers.err, 'no such key', 1, true) then
    return redis.error_reply('NOGROUP the stream is missing')
  end
  return consumers
end
local is_reader = false
for _, consumer in ipairs(consumers) do
  for i = 1, #consumer, 2 do
    is_reader = is_reader or (consumer[i] == 'name' and consumer[i + 1] == ARGV[2])
  end
end
if not is_reader then
  return redis.error_reply('FENCED another reader took over')
end

local read = redis.pcall(
  'XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', ARGV[3], 'STREAMS', KEYS[1], ARGV[4])
if not read then
  return {{}, {}}
end
if read.err then
  return read
end
local pending = {}
if ARGV[4] ~= '>' then
  pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], '(' .. ARGV[4], '+', ARGV[3], ARGV[2])
  if pending.err then
    return pending
  end
end
return {read[1][2], pending}
