"""How a group of requests is spread over the replicas that can take a part of it; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spare:
    """What a replica can still take into its next step."""

    prefill_tokens: int
    requests: int


NONE = Spare(0, 0)


def divide(needs: Sequence[int], places: Sequence[Spare], preferred: Callable[[int], Sequence[int]] = lambda number: ()) -> list[int]:
    """For each request, by its prefill tokens and in turn, the index of its place; shorter than `needs` where one fits nowhere, so that
    nobody overtakes it.

    Only the first places are used, as many as it takes, each in proportion to its spare tokens. A place with any room takes one request
    however long: engines prefill long prompts in several steps. Of the places that have a part of their proportion left, a request
    takes the first one in what is `preferred` for its number, and otherwise the one that has most.
    """
    if len(needs) == 1:
        return [at for at, place in enumerate(places) if _fits(needs[0], 0, 0, place)][:1]
    used = _enough(needs, places)
    whole = sum(max(0, place.prefill_tokens) for place in used)
    scale = min(1.0, sum(needs) / whole) if whole else 1.0
    given, seats = [0] * len(used), [0] * len(used)
    chosen: list[int] = []

    def left(at: int) -> float:
        return used[at].prefill_tokens * scale - given[at]

    for number, need in enumerate(needs):
        fits = [at for at, place in enumerate(used) if _fits(need, given[at], seats[at], place)]
        if not fits:
            break
        wanted = preferred(number) if len(fits) > 1 else ()
        best = next((at for at in wanted if at in fits and left(at) > 0), None)
        best = max(fits, key=left) if best is None else best
        given[best] += need
        seats[best] += 1
        chosen.append(best)
    return chosen


def _enough(needs: Sequence[int], places: Sequence[Spare]) -> Sequence[Spare]:
    tokens, seats = sum(needs), len(needs)
    for count, place in enumerate(places, 1):
        tokens -= max(0, place.prefill_tokens)
        seats -= max(0, place.requests)
        if tokens <= 0 and seats <= 0:
            return places[:count]
    return places


def _fits(need: int, given: int, seats: int, place: Spare) -> bool:
    return seats < place.requests and (given + need <= place.prefill_tokens or (not seats and place.prefill_tokens > 0))
