"""What a tenant uses at all ingresses, in Redis: asked and counted in one round trip."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import cast

from redis.asyncio import Redis

from deployments.access.window import KEPT, WINDOW_S, Buckets, Used, Verdict
from deployments.config import KeyLimits
from grammar_service.artifacts.cache.link import RedisLink

FORMAT_VERSION = 1
NO_LIMIT = -1
FORGOTTEN_S = 3 * WINDOW_S

# The rule is that of `window.decide`: a test compares the two. Carried out here, nobody gets in between looking and counting.
ENTER = """
local key, bucket, kept, me, running = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local most = {tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])}
local cost, number, newest = tonumber(ARGV[8]), tonumber(ARGV[10]), 0
for i = 11, #ARGV, 3 do
  if math.abs(tonumber(ARGV[i]) - bucket) <= kept then
    if ARGV[i + 1] ~= '0' then redis.call('HINCRBY', key, 'r' .. ARGV[i], ARGV[i + 1]) end
    if ARGV[i + 2] ~= '0' then redis.call('HINCRBY', key, 't' .. ARGV[i], ARGV[i + 2]) end
  end
end
local used, told = {r = 0, t = 0, c = 0}, {}
if redis.call('HLEN', key) > 10000 then redis.call('DEL', key) end
local fields = redis.call('HGETALL', key)
for i = 1, #fields, 2 do
  local kind, at, value, last = fields[i]:sub(1, 1), fields[i]:match('^[rt]([1-9]%d*)$'), fields[i + 1], nil
  if kind == 'c' then at, value, last = value:match('^(%d+) (%d+) (%d+)$') end
  if at and math.abs(tonumber(at) - bucket) <= kept and value:match('^%-?%d+$') and #value <= 15 then
    if kind == 'c' and fields[i]:sub(2) == me then
      newest = tonumber(last)
      if number < newest then running = tonumber(value) end
      value = 0
    end
    used[kind] = used[kind] + tonumber(value)
    if kind ~= 'c' then
      told[#told + 1] = fields[i]
      told[#told + 1] = value
    end
  else
    redis.call('HDEL', key, fields[i])
  end
end
local verdict = 0
if cost >= 0 then
  if most[1] >= 0 and used.c + running > most[1] then verdict = 1
  elseif most[2] >= 0 and math.max(0, used.r) >= most[2] then verdict = 2
  elseif most[3] >= 0 and math.max(0, used.t) + cost > most[3] then verdict = 3
  else
    redis.call('HINCRBY', key, 'r' .. ARGV[1], 1)
    redis.call('HINCRBY', key, 't' .. ARGV[1], cost)
  end
  if verdict > 0 then running = running - 1 end
end
if most[1] >= 0 then
  redis.call('HSET', key, 'c' .. me, string.format('%d %d %d', bucket, running, math.max(number, newest)))
end
redis.call('EXPIRE', key, ARGV[9])
return {verdict, used.c, told}
"""
"""A hash for each tenant: `r<bucket>` and `t<bucket>` are requests and tokens, `c<ingress>` the bucket in which that ingress last told how
many requests of the tenant it has, how many, and the number of that call; who has not told for a minute has ended. Calls may overtake each
other: what a later one has told counts the request of an earlier one already.

ARGV: the bucket of now, buckets that count, the ingress, its requests with this one, the three limits (-1: none), tokens (-1: nothing is
asked, only told), seconds until all is forgotten, the number of the call; then for each bucket to be corrected its number, requests and
tokens. Fields that no ingress writes are deleted.
Answers the `Verdict`, what other ingresses have under way, and fields and values before this request.
"""


@dataclass(slots=True)
class Corrections:
    """What is to be added to buckets when Redis is next asked."""

    buckets: dict[int, Used] = field(default_factory=dict)

    def add(self, bucket: int, used: Used) -> None:
        self.buckets[bucket] = self.buckets.get(bucket, Used()) + used

    def put_back(self, others: Mapping[int, Used]) -> None:
        for bucket, used in others.items():
            self.add(bucket, used)

    def take(self) -> dict[int, Used]:
        taken, self.buckets = self.buckets, {}
        return taken


@dataclass(frozen=True, slots=True)
class Answer:
    """`buckets` are all ingresses', with the request where it was admitted; `elsewhere` are requests under way at others."""

    verdict: Verdict
    elsewhere: int
    buckets: Buckets


class SharedWindow:
    """`ingress` is a name that no other one has, without blanks."""

    def __init__(self, link: RedisLink, namespace: str, ingress: str) -> None:
        self._link = link
        self._root = f"{namespace}:used:{FORMAT_VERSION}"
        self._ingress = ingress
        self._numbers = count(1)

    async def enter(self, tenant: str, limits: KeyLimits, running: int, cost: int, bucket: int, corrections: Mapping[int, Used]) -> Answer:
        """Whether one more request fits; `running` counts it among those of this ingress. Raises CacheUnavailable."""
        verdict, elsewhere, told = await self._ask(tenant, limits, running, cost, bucket, corrections)
        buckets = _buckets(told)
        if verdict == Verdict.ADMITTED:
            buckets[bucket] = buckets.get(bucket, Used()) + Used(1, cost)
        return Answer(Verdict(verdict), elsewhere, buckets)

    async def tell(self, tenant: str, limits: KeyLimits, running: int, bucket: int, corrections: Mapping[int, Used]) -> None:
        """How many requests this ingress has, and what others were charged wrongly. Raises CacheUnavailable."""
        await self._ask(tenant, limits, running, -1, bucket, corrections)

    async def close(self) -> None:
        await self._link.close()

    async def _ask(
        self, tenant: str, limits: KeyLimits, running: int, cost: int, bucket: int, corrections: Mapping[int, Used]
    ) -> tuple[int, int, list[bytes]]:
        bounds = (limits.concurrent_requests, limits.requests_per_minute, limits.tokens_per_minute)
        most = [NO_LIMIT if bound is None else bound for bound in bounds]
        corrected = [number for at, used in corrections.items() for number in (at, used.requests, used.tokens)]
        arguments: list[int | str] = [bucket, KEPT, self._ingress, running, *most, cost, FORGOTTEN_S, next(self._numbers), *corrected]

        def call(redis: Redis) -> Awaitable[tuple[int, int, list[bytes]]]:
            return cast(Awaitable[tuple[int, int, list[bytes]]], redis.eval(ENTER, 1, f"{self._root}:{tenant}", *arguments))

        return await self._link.ask(call)


def _buckets(told: Iterable[bytes]) -> dict[int, Used]:
    found: dict[int, Used] = {}
    each = iter(told)
    for name, value in zip(each, each, strict=True):
        used = Used(requests=int(value)) if name.startswith(b"r") else Used(tokens=int(value))
        bucket = int(name[1:])
        found[bucket] = found.get(bucket, Used()) + used
    return found
