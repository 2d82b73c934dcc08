"""Reads a Redis hash within bounds: whoever can write to Redis could make it arbitrarily large."""

from __future__ import annotations

READ_BOUNDED_HASH = """
local most, left, told = tonumber(ARGV[1]), tonumber(ARGV[2]), {}
if redis.call('HLEN', KEYS[1]) > most then return redis.error_reply('more fields than anybody has told') end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  local size = #field + redis.call('HSTRLEN', KEYS[1], field)
  if size <= left then
    left = left - size
    told[#told + 1] = field
    told[#told + 1] = redis.call('HGET', KEYS[1], field)
  end
end
return told
"""
"""A Lua script for EVAL; its text is constant, and all arguments are numbers. Answers fields and values in turn.

ARGV: the most fields (more are an error), and the most bytes of fields and values in all (what does not fit is left out).
"""
