-- Appends entries to a stream, in order; what follows a failed entry in its lane is left out.
--
-- KEYS[1]  the stream
-- ARGV[1]  for how many milliseconds entries are kept, or nothing
-- ARGV[2]  1 if a stream that is missing may be made
-- then for each entry: its lane, how many arguments follow, and these: names and values of its fields
--
-- Returns a text per entry: "+" and its id, "!" and the server's error, "?" where the stream is
-- missing, or "-" for what was left out.

local head = {'XADD', KEYS[1]}
if ARGV[2] ~= '1' then
  head[#head + 1] = 'NOMKSTREAM'
end
if ARGV[1] ~= '' then
  local now = redis.call('TIME')
  local oldest = now[1] * 1000 + math.floor(now[2] / 1000) - ARGV[1]
  head[#head + 1] = 'MINID'
  head[#head + 1] = '~'
  head[#head + 1] = string.format('%.0f', math.max(oldest, 0))
end
head[#head + 1] = '*'

local answers, failed = {}, {}
local at = 3
while at < #ARGV do
  local lane, count = ARGV[at], tonumber(ARGV[at + 1])
  local answer
  if failed[lane] then
    answer = '-'
  else
    local command = {unpack(head)}
    for i = at + 2, at + 1 + count do
      command[#command + 1] = ARGV[i]
    end
    local added = redis.pcall(unpack(command))
    if type(added) == 'string' then
      answer = '+' .. added
    else
      failed[lane] = true
      answer = added and added.err and '!' .. added.err or '?'
    end
  end
  answers[#answers + 1] = answer
  at = at + 2 + count
end
return answers
