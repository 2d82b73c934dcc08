"""Every number that the policy goes by."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameters:
    """Loads are in requests, for a replica of weight 1; times in seconds.

    Affinity. A replica is over its share when its load is above `bound` × the mean and above `floor`: in an engine that is nearly idle one
    request more costs next to nothing, and an even spread is not worth another copy of the grammar. Nor is what comes about at random: up
    to `deviations` × the square root of the mean above it. It is over its share as well when one more would be too many for its `seats`,
    the number of requests that an engine runs at once, and for the mean: it would wait there, and would not elsewhere. Where all have
    more than both, `slack` above the mean is no reason to move. Requests that wait for other replicas belong to the mean
    (`counts_waiting`): they are about to take the room that these seem to have.

    A grammar that is popular leaves its replica sooner than others, and makes room for them: it is resident on the next ones as well before
    long, where a rare one would cost another copy each time. The bound falls with popularity: what is above the mean in it counts
    `leeway` times for a grammar that is never asked for, less for others, and not at all for one that is asked for as often as `hot` × what
    is one replica's share. What it spills goes to the first of the next `spill_choices` that its prefix prefers.

    Load. One for each request, and one for every `tokens_per_request` outstanding prefill tokens. A request that runs costs every step one
    token, a backlog costs the next step all of its tokens, and whoever comes next waits behind it. Reports count in full until `fresh_s`
    and not at all from `stale_s` on. They are smoothed over `smooth_s`, and step times over `steps_smooth_s`: long prompts and a busy
    machine make any engine slow for seconds; one that takes `slow` times as long as usual counts as loaded by as much more. Between reports
    half of a prefill backlog is worked off every `half_life_s`, or as fast as reports have shown (`learns_pace`), and others' requests come
    and go as ours (`extrapolates`).

    Groups. Several requests of one grammar wait `window_s` for more, unless they have `prefill_budget` tokens, which is what one engine
    step prefills, and the most that goes to one replica at a time, but for a single longer request; nothing goes where `queued_steps` of
    them are waiting. A group that is too large for the seats that are free takes none, until `kept_free` of all are, or for `hold_s` once
    it is first in line. Where there is no room, it is asked for again when a replica may have got some, and after `retry_s`, then after as
    long as the group has waited, and every quarter of a second in the end. After `patience_s` it matters no more how much a replica has to
    prefill, and who waits for one that has answered nothing for `silent_s` leaves it; after `seat_patience_s` a request goes whatever is
    said of room: the engine has a queue of its own."""

    bound: float = 1.25
    floor: float = 8.0
    slack: float = 0.1
    leeway: float = 1.5
    deviations: float = 2.0
    hot: float = 1.4
    seats: float = math.inf
    counts_waiting: bool = True
    spill_choices: int = 2
    prefix_alone: bool = True
    prefix_divides: bool = True
    tokens_per_request: float = 64.0
    half_life_s: float = 0.25
    learns_pace: bool = True
    extrapolates: bool = True
    fresh_s: float = 15.0
    stale_s: float = 45.0
    smooth_s: float = 2.0
    slow: float = 2.0
    steps_smooth_s: float = 20.0
    window_s: float = 0.002
    prefill_budget: int = 8192
    queued_steps: float = 4.0
    kept_free: float = 1 / 4
    hold_s: float = 3.0
    patience_s: float = 10.0
    silent_s: float = 10.0
    seat_patience_s: float = 30.0
    retry_s: float = 0.01
