"""Reads hashes that many processes write their parts of, without trusting that only they do."""

from __future__ import annotations

FIELDS = """
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
"""Fields and values in turn. ARGV: how many fields there may be, an error otherwise, and the bytes that they and their values may have in
all; larger ones are left out."""
