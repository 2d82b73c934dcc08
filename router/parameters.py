"""Every number that the policy goes by, and the figure that decided it (`maskcast simulate --ablate`, `python -m load_tests.routing`)."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameters:
    """`seats` and `prefill_budget` are the engines'; the others are the policy's own. Loads are in requests, times in seconds."""

    bound: float = 1.25
    """× the mean load: a replica above it is passed over. 1.1 to 1.3 keep all promises, 1.5 breaks p99 waits of bursts and full seats."""
    floor: float = 8.0
    """A replica with no more is nearly idle and keeps its grammars. Without it, calls that follow each other leave home, as the last one is
    not yet known to have ended (grammars on a replica and loads, at half a request a second and replica)."""
    slack: float = 0.1
    """Share of the mean requests above it that is no reason to leave a replica whose seats are taken as everybody's are. Without it
    grammars move under overload (grammars on a replica)."""
    seats: float = math.inf
    """Requests that an engine runs at once."""
    prefill_budget: float = math.inf
    """Tokens that an engine prefills in one step: a group with more is divided, or a batch's p99 wait is ten times as long."""
    room_for_rare: bool = True
    """The more popular a grammar is, the less room it finds above the mean: it is resident on the next replica before long, where a rare
    one would cost another copy each time (p99 wait on full seats)."""
    half_life_s: float = 10.0
    """After which a request counts half as a sign that its grammar is popular: bursts are over in less, and it is rare again."""
    tokens_per_request: float = 64.0
    """Outstanding prefill tokens that weigh as much as a request. Without them, p99 waits of bursts, scale-up and shared prompts."""
    slow: float = 2.0
    """× the median step: a replica whose steps take longer counts as loaded by as much more (p99 latency beside a slow replica). Less is
    what a fuller batch takes."""
    steps_smooth_s: float = 20.0
    """Step times are smoothed over so long: on a busy machine any engine is slow for seconds, and grammars would move for it (grammars on
    a replica, on CPU engines)."""
    stale_s: float = 45.0
    """A report that is older says nothing; Ray Serve's come every second."""
    patience_s: float = 10.0
    """Who has waited so long leaves a replica that has answered nothing for as long, so that nobody waits for one that hangs until its
    health check fails (longest wait beside one). Leaving one that answers would cost mask rows on CPU engines."""
    longest_wait_s: float = 30.0
    """Then a request goes whatever is said of room, which is an estimate: the engine has a queue of its own."""
    kept_free: float = 1 / 4
    """Share of the seats: a group that is too large for those that are free takes none until so many are, so that its requests start in one
    step and are in the same states of their grammar for a while (mask rows on CPU engines, simulated and real)."""
    hold_s: float = 3.0
    """At most so long, since it is first in line: others wait behind it."""
    retry_s: float = 0.25
    """Who waits asks again where nothing has happened: the mean may have moved."""
