"""When requests come: a Poisson process whose rate changes with time. Nobody waits for an answer before asking."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Rate = Callable[[float], float]
"""How many times the usual rate there is, at a share of the time between 0 and 1."""


def arrivals(rate: Rate, peak: float, usual: float, seconds: float, random: Random) -> list[float]:
    """Seconds from the start, in order. `usual` is in requests a second, `peak` the most that `rate` comes to (thinning: Lewis and Shedler,
    1979)."""
    found, at = list[float](), random.expovariate(peak * usual)
    while at < seconds:
        if random.random() * peak < rate(at / seconds):
            found.append(at)
        at += random.expovariate(peak * usual)
    return found
