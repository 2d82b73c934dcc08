"""Laws of the turns at several replicas, whatever comes and goes: nobody starves, no seat stands empty, and nobody gets far ahead."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from router.dispatcher import Dispatcher
from router.grouping import Dispatched
from router.turns.shares import PROMPT
from tests.unit.router.clock import Clock
from tests.unit.router.dispatching import dispatcher

SEATS, LONGEST = 4, 8
REPLICAS = st.sampled_from(["a", "ab", "abc"])
TENANTS = {"x": 1.0, "y": 2.0, "z": 4.0}
KEYS = st.sampled_from([None, "one", "two"])
TOKENS = st.integers(1, LONGEST)
COMING = st.lists(st.tuples(st.sampled_from(sorted(TENANTS)), KEYS, TOKENS), max_size=6)
STEPS = st.lists(st.tuples(COMING, st.integers(0, 4)), min_size=1, max_size=25)
"""Who comes in a second, and how many of the oldest answers end."""


class Play:
    """A dispatcher in front of engines that do what they are told; `waiting` and `running` in their order."""

    def __init__(self, replicas: str) -> None:
        self.clock = Clock()
        self.policy: Dispatcher = dispatcher(replicas, self.clock, seats=SEATS)
        self.waiting: dict[str, Dispatched] = {}
        self.running: dict[str, str] = {}
        self.seats = SEATS * len(replicas)
        self.served: Counter[str] = Counter()
        self._come = 0

    def come(self, tenant: str, key: str | None, tokens: int) -> None:
        self._come += 1
        request = Dispatched(f"{tenant}{self._come}", key, tokens, None, 1, tenant, TENANTS[tenant])
        self.waiting[request.name] = request
        self.policy.arrived(request, self.clock.now)

    def second(self, ending: int = 0) -> None:
        self.clock.now += 1
        for name in list(self.running)[:ending]:
            del self.running[name]
            self.policy.gone(name)
        for release in self.policy.tick(self.clock.now):
            for name in release.requests:
                request = self.waiting.pop(name)
                self.running[name] = release.replica
                self.served[request.tenant] += request.tokens


@given(REPLICAS, STEPS)
def test_all_that_have_come_are_served_and_no_replica_gets_more_than_it_has_seats_for(
    replicas: str, steps: list[tuple[list[tuple[str, str | None, int]], int]]
) -> None:
    play = Play(replicas)
    for coming, ending in steps:
        for each in coming:
            play.come(*each)
        play.second(ending)
        assert max(Counter(play.running.values()).values(), default=0) <= SEATS
    for _ in range(2 * play._come + 2):
        play.second(ending=play.seats)
    assert not play.waiting
    assert not play.running
    assert len(play.policy) == 0


@given(st.sampled_from(["a", "ab"]), STEPS)  # of more, one look at two of them may miss the room at a third
def test_while_requests_without_a_grammar_wait_only_kept_seats_stand_empty(
    replicas: str, steps: list[tuple[list[tuple[str, str | None, int]], int]]
) -> None:
    play = Play(replicas)
    for coming, ending in steps:
        for tenant, _, tokens in coming:
            play.come(tenant, None, tokens)
        play.second(ending)
        if play.waiting:
            # Of a part of a seat that is to be kept, each replica keeps a whole one.
            assert play.seats - len(play.running) <= (len(replicas) if play.policy.shares.kept(play.clock.now) else 0)


@settings(max_examples=30)
@given(REPLICAS, st.integers(20, 40), st.lists(TOKENS, min_size=3, max_size=20), KEYS)
def test_tenants_that_always_wait_stay_within_a_bound_of_each_other(
    replicas: str, seconds: int, tokens: list[int], key: str | None
) -> None:
    """Sheng et al., theorem 4.4: twice the tokens of all that run together."""
    play = Play(replicas)
    for _ in range(seconds):
        waiting = Counter(request.tenant for request in play.waiting.values())
        for tenant in TENANTS:
            for number in range(2 * play.seats - waiting[tenant]):
                play.come(tenant, key and f"{key} {number % 3}", tokens[number % len(tokens)])
        play.second(ending=play.seats // 2)
        each = [PROMPT * play.served[tenant] / weight for tenant, weight in TENANTS.items()]
        assert max(each) - min(each) <= 2 * play.seats * LONGEST
