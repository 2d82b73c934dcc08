"""Turns among tenants: nobody starves, no seat stands empty for nothing, and shares follow the weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.fair_turns import FairParameters, FairTurns, Turned

STEP_S = 0.01
LONGEST_PROMPT, LONGEST_ANSWER = 50, 30
QUICK = FairParameters(quantum=100, present_s=0.5, patience_s=0.1)


@dataclass
class Engine:
    """Every step gives each running sequence a token; a request has as many as `answers` says."""

    turns: FairTurns
    seats: int
    step: int = 0
    busy: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    went: dict[str, int] = field(default_factory=dict)
    service: Counter[str] = field(default_factory=Counter)
    owners: dict[str, str] = field(default_factory=dict)

    @property
    def now(self) -> float:
        return self.step * STEP_S

    def ask(self, request: Turned, answer: int, weight: float = 1.0) -> None:
        self.answers[request.name], self.owners[request.name] = answer, request.tenant
        self.turns.arrived(request, self.now, weight)

    def advance(self) -> list[Turned]:
        gone = self.turns.turn(self.now)
        for request in gone:
            assert request.name not in self.went
            self.went[request.name] = self.step
            self.left[request.name] = self.answers[request.name]
            self.sizes[request.name] = request.sequences
            self.service[request.tenant] += request.tokens
        self.busy = len(self.left)
        for name in list(self.left):
            self.turns.computed(name, sampled=self.sizes[name])
            self.service[self.owners[name]] += 2 * self.sizes[name]
            self.left[name] -= 1
            if not self.left[name]:
                del self.left[name]
                self.turns.ended(name, self.now)
        self.step += 1
        return gone


def engine(seats: int, parameters: FairParameters = QUICK) -> Engine:
    return Engine(FairTurns(seats, parameters), seats)


def backlog(target: Engine, tenants: Iterable[tuple[str, float]], prompt: int = 5, answer: int = 10, each: int = 50) -> Iterator[None]:
    """Keeps so many requests of each tenant waiting, whose answers are not all of one length: seats get free one by one."""
    numbers, waiting = count(), Counter[str]()
    while True:
        for tenant, weight in tenants:
            while waiting[tenant] < each:
                number = next(numbers)
                target.ask(Turned(f"{tenant} {target.step} {number}", tenant, None, prompt), answer + number % 5, weight)
                waiting[tenant] += 1
        for request in target.advance():
            waiting[request.tenant] -= 1
        yield


REQUESTS = st.lists(
    st.tuples(
        st.integers(0, 20),  # steps since the one before
        st.sampled_from("abc"),
        st.sampled_from([None, "x", "y"]),
        st.integers(0, LONGEST_PROMPT),
        st.integers(1, LONGEST_ANSWER),
        st.integers(1, 6),
    ),
    max_size=40,
)


@given(REQUESTS, st.integers(1, 24))
def test_all_go_once_and_no_seat_stands_empty_for_nothing(requests: list[tuple[int, str, str | None, int, int, int]], seats: int) -> None:
    played, arrivals = engine(seats), dict[int, list[tuple[Turned, int]]]()
    at = 0
    for number, (gap, tenant, key, prompt, answer, sequences) in enumerate(requests):
        at += gap
        arrivals.setdefault(at, []).append((Turned(str(number), tenant, key, prompt, sequences), answer))
    turns, kept, last_seen = played.turns, seats // 8, dict[str, int]()
    longest = at + (len(requests) + 1) * (LONGEST_ANSWER + 12)  # one after the other, each with its patience
    waiting: dict[str, Turned] = {}
    while played.step <= longest and (played.step <= at or len(turns) or played.left):
        for request, answer in arrivals.get(played.step, ()):
            played.ask(request, answer)
            waiting[request.name] = request
            last_seen[request.tenant] = played.step
        running = set(played.left)
        for request in (gone := played.advance()):
            del waiting[request.name]
        held_up = {request.tenant for request in waiting.values()}
        free = seats - sum(min(played.sizes[name], max(1, seats - kept)) for name in running | {one.name for one in gone})
        assert free >= 0
        if free and waiting:
            fits = any(min(one.sequences, seats - kept) <= free for one in waiting.values())
            for_light = free <= kept and any(tenant not in held_up for tenant in last_seen)
            saved_up = any(one.sequences > free for one in waiting.values())
            assert not fits or for_light or saved_up
    assert set(played.went) == set(played.answers)
    assert turns.free == seats


@given(
    st.lists(
        st.tuples(st.sampled_from([1.0, 2.0, 4.0]), st.integers(0, LONGEST_PROMPT), st.integers(1, LONGEST_ANSWER)), min_size=2, max_size=4
    ),
    st.integers(2, 24),
    st.integers(50, 300),
)
def test_who_always_waits_gets_its_share_within_a_bound(kinds: list[tuple[float, int, int]], seats: int, steps: int) -> None:
    """Theorem 4.4 of the paper, with our turns: twice what one turn and what runs may cost."""
    played = engine(seats)
    numbers, waiting = count(), Counter[str]()
    for _ in range(steps):
        for tenant, (weight, prompt, answer) in enumerate(kinds):
            while waiting[str(tenant)] < seats + 1:
                played.ask(Turned(f"{tenant} {next(numbers)}", str(tenant), None, prompt), answer, weight)
                waiting[str(tenant)] += 1
        for request in played.advance():
            waiting[request.tenant] -= 1
    bound = 2 * (QUICK.quantum + LONGEST_PROMPT + 2 * seats * LONGEST_ANSWER)
    by_weight = [played.service[str(tenant)] / weight for tenant, (weight, _, _) in enumerate(kinds)]
    for one, other in combinations(by_weight, 2):
        assert abs(one - other) <= bound


def test_shares_follow_the_weights() -> None:
    played, weights = engine(64), [("a", 1.0), ("b", 2.0), ("c", 4.0)]
    steps = backlog(played, weights, each=100)
    for _ in range(3000):
        next(steps)
    total = sum(played.service.values())
    for tenant, weight in weights:
        assert played.service[tenant] / total == pytest.approx(weight / 7, rel=0.1)


def test_tenants_that_ask_differently_get_the_same_tokens_and_not_the_same_requests() -> None:
    played, numbers = engine(16), count()
    for _ in range(600):
        played.ask(Turned(f"long{next(numbers)}", "long", None, 40), 20)
        for _ in range(2):
            played.ask(Turned(f"short{next(numbers)}", "short", None, 5), 10)
    for _ in range(1000):
        played.advance()
    assert len(played.turns) > 100
    assert played.service["short"] == pytest.approx(played.service["long"], rel=0.1)


def test_who_is_alone_gets_everything() -> None:
    played = engine(64)
    steps = backlog(played, [("alone", 1.0)], each=200)
    for _ in range(30):
        next(steps)
        assert played.busy == 64


def test_a_light_tenant_finds_a_seat_beside_a_flood() -> None:
    """But for the first time, when the flood had every right to all of them: then it has the next seat that gets free."""
    played, numbers = engine(64, FairParameters()), count()
    steps, waits = backlog(played, [("flood", 1.0)], answer=LONGEST_ANSWER - 4, each=200), list[int]()
    for _ in range(20):
        for _ in range(37):
            next(steps)
        name = f"light{next(numbers)}"
        asked_at = played.step
        played.ask(Turned(name, "light", None, 5), 10)
        while name not in played.went:
            next(steps)
        waits.append(played.went[name] - asked_at)
    assert waits[0] <= LONGEST_ANSWER
    assert waits[1:] == [0] * 19


def test_seats_are_kept_no_longer_than_anybody_may_come() -> None:
    played = engine(16)
    played.ask(Turned("light", "light"), 1)
    steps = backlog(played, [("flood", 1.0)], answer=1000, each=30)
    next(steps)
    next(steps)
    assert len(played.left) == 14
    played.step += int(QUICK.present_s / STEP_S)
    next(steps)
    assert len(played.left) == 16


def test_turns_cannot_be_saved_up() -> None:
    """A tenant that was away for long gets no more than its share when it comes back."""
    played = engine(16)
    played.ask(Turned("early", "idle"), 1)
    busy = backlog(played, [("busy", 1.0)])
    for _ in range(2000):
        next(busy)
    before = Counter(played.service)
    both = backlog(played, [("idle", 1.0), ("busy", 1.0)])
    for _ in range(1000):
        next(both)
    after = played.service - before
    assert after["idle"] == pytest.approx(after["busy"], rel=0.1)


def test_a_grammar_goes_together_within_its_tenants_turn() -> None:
    turns = FairTurns(16, QUICK)
    turns.computed("nobody")
    for number in range(8):
        turns.arrived(Turned(f"a{number}", "a", "xy"[number % 2], 20), 0.0)
        turns.arrived(Turned(f"b{number}", "b", None, 20), 0.0)
    gone = [request.name for request in turns.turn(0.0)]
    assert gone[:4] == ["a0", "a2", "a4", "a6"]
    assert gone[4:8] == ["b0", "b1", "b2", "b3"]


def test_a_turn_is_no_longer_than_its_quantum() -> None:
    turns = FairTurns(16, QUICK)
    for number in range(8):
        turns.arrived(Turned(f"a{number}", "a", "x", 40), 0.0)
        turns.arrived(Turned(f"b{number}", "b", "x", 40), 0.0)
    assert [request.tenant for request in turns.turn(0.0)][:6] == ["a", "a", "b", "b", "a", "a"]


def test_a_request_for_many_seats_is_passed_over_and_then_they_are_saved_up() -> None:
    played = engine(8, FairParameters(patience_s=0.5, present_s=0))
    steps = backlog(played, [("flood", 1.0)], prompt=0, answer=7, each=20)
    for _ in range(20):
        next(steps)
    played.ask(Turned("wide", "wide", None, 0, 8), 5)
    asked_at = played.step
    while "wide" not in played.went:
        assert played.step < asked_at + 200
        next(steps)
    assert played.went["wide"] - asked_at >= 0.5 / STEP_S - 1


def test_who_leaves_is_forgotten() -> None:
    turns = FairTurns(2, QUICK)
    for name in "xyz":
        turns.arrived(Turned(name, "a"), 0.0)
        turns.arrived(Turned(name, "a"), 0.0)
    assert [request.name for request in turns.turn(0.0)] == ["x", "y"]
    turns.ended("z", 0.0)
    turns.ended("x", 0.0)
    turns.ended("x", 0.0)
    turns.ended("unknown", 0.0)
    assert (len(turns), turns.free) == (0, 1)
    turns.ended("y", 0.0)
    assert turns.turn(1.0) == []
    assert turns.used("a") == 0.0
