"""What a tenant may have beside those of other ingresses."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from router.turns.shares import PRESENT_S, Presence, Shares

SEATS = 16
WEIGHTS = st.floats(0.1, 10)
PRESENCES = st.builds(Presence, WEIGHTS, st.integers(0, SEATS), st.integers(0, 2 * SEATS))


def flooded(by: str, sequences: int = 100, weight: float = 1.0) -> Shares:
    shares = Shares(SEATS)
    shares.came(by, sequences, weight, 0.0)
    return shares


def test_seats_are_kept_for_who_is_light_elsewhere_and_for_a_while_after() -> None:
    shares = flooded("flood")
    assert shares.kept(0.0) == 0
    shares.heard({"light": Presence(1.0, held=1)}, 1.0)
    assert shares.kept(1.0) == shares.for_light - 1
    shares.heard({}, 2.0)
    assert shares.kept(2.0) == shares.for_light
    assert shares.kept(1.0 + PRESENT_S) == 0


def test_who_floods_another_ingress_is_light_at_none() -> None:
    shares = flooded("busy", sequences=1)
    shares.came("other", 1, 1.0, 0.0)
    assert shares.may_take("busy", 1, 2)
    shares.heard({"busy": Presence(1.0, SEATS, 5)}, 1.0)
    assert not shares.may_take("busy", 1, 2)
    assert shares.may_take("other", 1, 2)


def test_only_who_is_here_is_told_of() -> None:
    shares = flooded("mine", weight=2.0)
    shares.heard({"theirs": Presence(1.0, 3, 3)}, 1.0)
    assert shares.present(1.0) == {"mine": Presence(2.0, 0, 100)}
    shares.left("mine", 100, 2.0)
    assert shares.present(2.0) == {"mine": Presence(2.0)}
    assert shares.present(2.0 + PRESENT_S) == {}


@given(WEIGHTS, st.integers(1, 100), st.dictionaries(st.sampled_from("abc"), PRESENCES))
def test_nobody_is_starved_and_no_seat_stands_empty_for_who_does_not_ask(weight: float, asked: int, elsewhere: dict[str, Presence]) -> None:
    shares = flooded("mine", asked, weight)
    shares.heard(elsewhere, 1.0)
    room = shares.room("mine")
    assert room >= 1
    if not any(there.asked for there in elsewhere.values()):
        assert room == math.inf
    wanted = sum(there.held + there.asked for there in elsewhere.values())
    assert room >= SEATS - wanted


@given(st.lists(WEIGHTS, min_size=2, max_size=5))
def test_floods_at_different_ingresses_are_given_their_parts(weights: list[float]) -> None:
    for index, weight in enumerate(weights):
        shares = flooded(str(index), weight=weight)
        shares.heard({str(other): Presence(each, 0, 100) for other, each in enumerate(weights) if other != index}, 1.0)
        part = SEATS * weight / sum(weights)
        assert part - 1e-6 <= shares.room(str(index)) <= part + 1
