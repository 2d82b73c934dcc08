"""How much may be registered, and the script by which Redis keeps to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


@dataclass(frozen=True, slots=True)
class Room:
    """The most that one tenant registers, in names and in bytes, and the most bytes of all tenants together: entries do not expire, and
    what they take of Redis' memory is lost to compiled grammars."""

    names: int = 1000
    tenant_bytes: int = 16 << 20
    all_bytes: int = 64 << 20


class Stored(IntEnum):
    """What became of an entry that was to be stored: the script's answer."""

    NEW = 0
    TAKEN = 1
    NO_NAMES_LEFT = 2
    TENANT_HAS_NO_ROOM = 3
    ALL_HAVE_NO_ROOM = 4


# A script is carried out whole before Redis listens to anybody else: who counts first and writes later can be overtaken in between. The
# sizes are added up anew each time, so that what has been evicted or deleted by hand does not stay counted.
PUT = """
local place, sizes, tenants = KEYS[1], KEYS[2], KEYS[3]
local data, name, tenant, only_if_free = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
local names, tenant_bytes, all_bytes = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
if only_if_free and redis.call('EXISTS', place) == 1 then return 1 end
local count, bytes = 1, #data
local held = redis.call('HGETALL', sizes)
for i = 1, #held, 2 do
  if held[i] ~= name then
    count = count + 1
    bytes = bytes + tonumber(held[i + 1])
  end
end
if count > names then return 2 end
if bytes > tenant_bytes then return 3 end
local all = bytes
local others = redis.call('HGETALL', tenants)
for i = 1, #others, 2 do
  if others[i] ~= tenant then all = all + tonumber(others[i + 1]) end
end
if all > all_bytes then return 4 end
redis.call('SET', place, data)
redis.call('HSET', sizes, name, #data)
redis.call('HSET', tenants, tenant, bytes)
return 0
"""
"""KEYS: the entry, the sizes of the tenant's entries by name, the bytes of all tenants. ARGV: the entry, its name, the tenant, '1' where
the name must be free, and the `Room`. Answers a `Stored`."""

DELETE = """
local deleted = redis.call('DEL', KEYS[1])
local size = tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or '0')
redis.call('HDEL', KEYS[2], ARGV[1])
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('HDEL', KEYS[3], ARGV[2])
elseif size > 0 then
  redis.call('HINCRBY', KEYS[3], ARGV[2], -size)
end
return deleted
"""
"""KEYS as those of `PUT`; ARGV: the entry's name, the tenant. Answers how many there were."""
