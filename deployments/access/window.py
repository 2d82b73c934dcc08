"""What a tenant has used in the last minute, and whether one more request fits; pure.

Time is cut into buckets, and all of a bucket counts until its last moment is a minute old. So no sixty seconds ever hold more than the
limit; the price is that what has been used comes back up to `BUCKET_S` late. (Two whole minutes weighed by their overlap, the usual
approximation, would let through nearly twice the limit.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from deployments.config import KeyLimits

WINDOW_S = 60
BUCKET_S = 5
KEPT = WINDOW_S // BUCKET_S
"""Buckets beside the one of now in which something may be less than a minute old."""
BUSY_S = 1
"""When to come again where too much is under way: nobody knows."""


class Verdict(IntEnum):
    """Which limit a request does not fit in."""

    ADMITTED = 0
    CONCURRENT = 1
    REQUESTS = 2
    TOKENS = 3


@dataclass(frozen=True, slots=True)
class Used:
    """Of one bucket."""

    requests: int = 0
    tokens: int = 0

    def __add__(self, other: Used) -> Used:
        return Used(self.requests + other.requests, self.tokens + other.tokens)

    def __sub__(self, other: Used) -> Used:
        """Nothing where more is taken away than there is."""
        return Used(max(0, self.requests - other.requests), max(0, self.tokens - other.tokens))


Buckets = Mapping[int, Used]
"""By their number: seconds of the clock, divided by `BUCKET_S`."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a tenant stands after a request. `remaining` are requests and tokens, None without a limit; `reset_s` says when all of them are
    there again, `retry_after_s` when the request would fit that has not."""

    verdict: Verdict
    limits: KeyLimits
    remaining_requests: int | None
    remaining_tokens: int | None
    reset_requests_s: float
    reset_tokens_s: float
    retry_after_s: float = 0.0


def bucket_of(now: float) -> int:
    return math.floor(now / BUCKET_S)


def counted(buckets: Buckets, now: float) -> dict[int, Used]:
    """Those in which something may be less than a minute old. Clocks of others may be ahead; what is more than a minute ahead is of a clock
    that has been set back since, and would count until that is there again."""
    bucket = bucket_of(now)
    return {number: used for number, used in buckets.items() if abs(number - bucket) <= KEPT}


def decide(limits: KeyLimits, concurrent: int, buckets: Buckets, cost: int, now: float) -> Verdict:
    """Whether one more request of `cost` tokens fits beside `concurrent` others."""
    requests, tokens = _sums(counted(buckets, now))
    if limits.concurrent_requests is not None and concurrent >= limits.concurrent_requests:
        return Verdict.CONCURRENT
    if limits.requests_per_minute is not None and requests >= limits.requests_per_minute:
        return Verdict.REQUESTS
    if limits.tokens_per_minute is not None and tokens + cost > limits.tokens_per_minute:
        return Verdict.TOKENS
    return Verdict.ADMITTED


def standing(verdict: Verdict, limits: KeyLimits, buckets: Buckets, cost: int, now: float) -> Standing:
    """`buckets` hold the request where it was admitted."""
    left = counted(buckets, now)
    requests, tokens = _sums(left)
    return Standing(
        verdict,
        limits,
        _remaining(limits.requests_per_minute, requests),
        _remaining(limits.tokens_per_minute, tokens),
        max((_leaves(number, now) for number, used in left.items() if used.requests), default=0.0),
        max((_leaves(number, now) for number, used in left.items() if used.tokens), default=0.0),
        _retry_after(verdict, limits, left, cost, now),
    )


def share(limits: KeyLimits, ingresses: int) -> KeyLimits:
    """What one of several ingresses grants that know nothing of each other: together at most twice the limits, so that requests which
    are not spread evenly are not refused for it."""
    if ingresses <= 2:
        return limits
    parts = {name: value and max(1, 2 * value // ingresses) for name, value in limits if name in KeyLimits.model_fields}
    return KeyLimits(**parts)


def _sums(buckets: Buckets) -> tuple[int, int]:
    total = sum(buckets.values(), Used())
    return max(0, total.requests), max(0, total.tokens)


def _remaining(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(0, limit - used)


def _leaves(bucket: int, now: float) -> float:
    """Seconds until a bucket counts no more."""
    return (bucket + KEPT + 1) * BUCKET_S - now


def _retry_after(verdict: Verdict, limits: KeyLimits, buckets: Buckets, cost: int, now: float) -> float:
    match verdict:
        case Verdict.REQUESTS:
            return _until_fits(limits.requests_per_minute or 0, {number: used.requests for number, used in buckets.items()}, 1, now)
        case Verdict.TOKENS:
            return _until_fits(limits.tokens_per_minute or 0, {number: used.tokens for number, used in buckets.items()}, cost, now)
        case Verdict.CONCURRENT:
            return BUSY_S
    return 0.0


def _until_fits(limit: int, used: Mapping[int, int], cost: int, now: float) -> float:
    return next((_leaves(number, now) for number, left in _leaving(used) if left + cost <= limit), float(WINDOW_S))


def _leaving(used: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Each bucket, oldest first, and what is left without it and those before it."""
    left = sum(used.values())
    for number in sorted(used):
        left -= used[number]
        yield number, left
