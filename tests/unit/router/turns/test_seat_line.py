"""Turns among tenants: nobody starves, no seat stands empty for nothing, and shares follow the weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.turns.seat_line import Guest, SeatLine
from router.turns.shares import PRESENT_S, SAMPLED

STEP_S = 0.01
LONGEST_PROMPT, LONGEST_ANSWER = 50, 30


@dataclass
class Engine:
    """Every step gives each running sequence a token; a guest has as many as it was asked with."""

    seats: int
    line: SeatLine = field(init=False)
    step: int = 0
    idle: int = 0
    answers: dict[Guest, int] = field(default_factory=dict)
    left: dict[Guest, int] = field(default_factory=dict)
    went: dict[Guest, int] = field(default_factory=dict)
    service: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.line = SeatLine(self.seats)

    @property
    def now(self) -> float:
        return self.step * STEP_S

    def ask(self, guest: Guest, answer: int) -> Guest:
        self.answers[guest] = answer
        self.line.arrived(guest, self.now)
        return guest

    def advance(self) -> list[Guest]:
        gone = self.line.turn(self.now)
        self.idle = self.line.free
        for guest in gone:
            assert guest not in self.went
            self.went[guest] = self.step
            self.left[guest] = self.answers[guest]
            self.service[guest.tenant] += guest.tokens
        for guest in list(self.left):
            self.line.shares.charge(guest.tenant, SAMPLED * guest.sequences)
            self.service[guest.tenant] += int(SAMPLED) * guest.sequences
            self.left[guest] -= 1
            if not self.left[guest]:
                del self.left[guest]
                self.line.gone(guest, self.now)
        self.step += 1
        return gone


def backlog(engine: Engine, tenants: Iterable[tuple[str, float]], prompt: int = 5, answer: int = 10, each: int = 50) -> Iterator[None]:
    """Keeps so many guests of each tenant waiting, whose answers are not all of one length: seats get free one by one."""
    asked, waiting = 0, Counter[str]()
    while True:
        for tenant, weight in tenants:
            while waiting[tenant] < each:
                engine.ask(Guest(tenant, weight, prompt), answer + asked % 5)
                asked += 1
                waiting[tenant] += 1
        for guest in engine.advance():
            waiting[guest.tenant] -= 1
        yield


GUESTS = st.lists(
    st.tuples(
        st.integers(0, 20),  # steps since the one before
        st.builds(Guest, st.sampled_from("abc"), st.sampled_from([1.0, 3.0]), st.integers(0, LONGEST_PROMPT), st.integers(1, 6)),
        st.integers(1, LONGEST_ANSWER),
    ),
    max_size=40,
)


@given(GUESTS, st.integers(1, 24))
def test_all_go_once_and_no_seat_stands_empty_for_nothing(guests: list[tuple[int, Guest, int]], seats: int) -> None:
    engine, arrivals, at = Engine(seats), dict[int, list[tuple[Guest, int]]](), 0
    for gap, guest, answer in guests:
        at += gap
        arrivals.setdefault(at, []).append((guest, answer))
    longest = at + (len(guests) + 1) * LONGEST_ANSWER + PRESENT_S / STEP_S  # one after the other
    kept, waiting, seen = seats // 8, dict[Guest, None](), set[str]()
    while engine.step <= longest and (engine.step <= at or len(engine.line) or engine.left):
        for guest, answer in arrivals.get(engine.step, ()):
            waiting[engine.ask(guest, answer)] = None
            seen.add(guest.tenant)
        running = set(engine.left)
        for guest in (gone := engine.advance()):
            del waiting[guest]
        free = seats - sum(min(guest.sequences, seats - kept) for guest in running | set(gone))
        assert free == engine.idle >= 0
        heads = [next(guest for guest in waiting if guest.tenant == tenant) for tenant in {guest.tenant for guest in waiting}]
        if free > (kept if len(seen) > 1 else 0) and heads:
            assert any(min(head.sequences, seats - kept) > free - kept for head in heads), "seats are saved up for somebody"
    assert set(engine.went) == set(engine.answers)
    assert engine.line.free == seats


@given(
    st.lists(
        st.tuples(st.sampled_from([1.0, 2.0, 4.0]), st.integers(0, LONGEST_PROMPT), st.integers(1, LONGEST_ANSWER)), min_size=2, max_size=4
    ),
    st.integers(2, 24),
    st.integers(50, 300),
)
def test_who_always_waits_gets_its_share_within_a_bound(kinds: list[tuple[float, int, int]], seats: int, steps: int) -> None:
    """Theorem 4.4 of the paper: twice what one prompt and what runs may cost."""
    engine, waiting = Engine(seats), Counter[str]()
    for _ in range(steps):
        for tenant, (weight, prompt, answer) in enumerate(kinds):
            while waiting[str(tenant)] < seats + 1:
                engine.ask(Guest(str(tenant), weight, prompt), answer)
                waiting[str(tenant)] += 1
        for guest in engine.advance():
            waiting[guest.tenant] -= 1
    bound = 2 * (LONGEST_PROMPT + SAMPLED * seats * LONGEST_ANSWER)
    by_weight = [engine.service[str(tenant)] / weight for tenant, (weight, _, _) in enumerate(kinds)]
    for one, other in combinations(by_weight, 2):
        assert abs(one - other) <= bound


def test_shares_follow_the_weights() -> None:
    engine, weights = Engine(64), [("a", 1.0), ("b", 2.0), ("c", 4.0)]
    steps = backlog(engine, weights, each=100)
    for _ in range(3000):
        next(steps)
    total = sum(engine.service.values())
    for tenant, weight in weights:
        assert engine.service[tenant] / total == pytest.approx(weight / 7, rel=0.1)


def test_tenants_that_ask_differently_get_the_same_tokens_and_not_the_same_requests() -> None:
    engine = Engine(16)
    for _ in range(600):
        engine.ask(Guest("long", 1.0, 40), 20)
        for _ in range(2):
            engine.ask(Guest("short", 1.0, 5), 10)
    for _ in range(1000):
        engine.advance()
    assert len(engine.line) > 100
    assert engine.service["short"] == pytest.approx(engine.service["long"], rel=0.1)


def test_who_is_alone_gets_everything() -> None:
    engine = Engine(64)
    steps = backlog(engine, [("alone", 1.0)], each=200)
    for _ in range(30):
        next(steps)
        assert engine.idle == 0


@pytest.mark.parametrize("sequences", [1, 56])
def test_a_light_tenant_finds_a_seat_beside_a_flood(sequences: int) -> None:
    """But for the first time, when the flood had every right to all of them: then it has the next seat that gets free."""
    engine, waits = Engine(64), list[int]()
    steps = backlog(engine, [("flood", 1.0)], answer=LONGEST_ANSWER - 4, each=200)
    for number in range(20):
        for _ in range(37):
            engine.ask(Guest("flood", 1.0, 5, sequences), LONGEST_ANSWER)
            next(steps)
        lights = [engine.ask(Guest("light", 1.0, 5), 10 + number % 3) for _ in range(8)]
        asked_at = engine.step
        while any(light not in engine.went for light in lights):
            next(steps)
        waits.append(max(engine.went[light] for light in lights) - asked_at)
    assert waits[0] <= LONGEST_ANSWER
    assert waits[1:] == [0] * 19


def test_a_flood_is_not_starved_by_many_that_are_light() -> None:
    engine = Engine(64)
    steps = backlog(engine, [("flood", 1.0)], each=200)
    for _ in range(300):
        for tenant in range(30):
            engine.ask(Guest(f"light{tenant}", 1.0, 5), 10)
        next(steps)
    assert engine.service["flood"] >= sum(engine.service.values()) / 31 * 0.9


def test_seats_are_kept_no_longer_than_anybody_may_come() -> None:
    engine = Engine(16)
    engine.ask(Guest("light"), 1)
    steps = backlog(engine, [("flood", 1.0)], answer=10_000, each=30)
    next(steps)
    next(steps)
    assert len(engine.left) == 14
    engine.step += int(PRESENT_S / STEP_S)
    next(steps)
    assert len(engine.left) == 16


def test_turns_cannot_be_saved_up() -> None:
    """A tenant that was away for long gets no more than its share when it comes back."""
    engine = Engine(16)
    engine.ask(Guest("idle"), 1)
    busy = backlog(engine, [("busy", 1.0)])
    for _ in range(2000):
        next(busy)
    before = Counter(engine.service)
    both = backlog(engine, [("idle", 1.0), ("busy", 1.0)])
    for _ in range(1000):
        next(both)
    after = engine.service - before
    assert after["idle"] == pytest.approx(after["busy"], rel=0.1)


def test_seats_are_saved_up_for_a_request_that_needs_many() -> None:
    engine = Engine(8)
    steps = backlog(engine, [("flood", 1.0)], prompt=0, answer=7, each=20)
    for _ in range(20):
        next(steps)
    wide = engine.ask(Guest("wide", sequences=8), 5)
    asked_at = engine.step
    while wide not in engine.went:
        next(steps)
    assert engine.went[wide] - asked_at <= 12


def test_who_leaves_is_forgotten() -> None:
    line = SeatLine(2)
    x, y, z = Guest("a"), Guest("a"), Guest("a")
    for guest in (x, y, z):
        line.arrived(guest, 0.0)
    assert line.turn(0.0) == [x, y]
    line.gone(z, 0.0)
    line.gone(x, 0.0)
    assert (len(line), line.free) == (0, 1)
    line.gone(y, 0.0)
    line.arrived(Guest("b"), PRESENT_S)
    assert len(line.shares) == 1
    assert line.shares.used("a") == 0.0
