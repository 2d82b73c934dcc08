"""What a grammar makes of the cases of a suite, and how that is counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """Of one case: REFUSED is a 400 for the schema; OVER rejects a valid instance, UNDER accepts an invalid one."""

    CORRECT = "correct"
    REFUSED = "refused"
    OVER = "over-constrained"
    UNDER = "under-constrained"


class Reason(StrEnum):
    """Why a valid instance is rejected: with the properties in the schema's order, with whole numbers spelt as integers and
    characters without escapes, without the signs of its numbers where the schema asks for multiples (those below zero are not
    written), or without the schema's `format` it is accepted."""

    ORDER = "property order"
    SPELLING = "spelling of numbers or characters"
    SIGN = "multiples below zero"
    FORMAT = "format enforced"
    NONE = "unexplained"


@dataclass(frozen=True, slots=True)
class Deviation:
    """One case that is over- or under-constrained."""

    keyword: str
    group: str
    case: str
    outcome: Outcome
    reason: Reason | None


@dataclass(slots=True)
class Tally:
    """Counts of outcomes."""

    counts: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))

    def add(self, outcome: Outcome) -> None:
        self.counts[outcome] += 1

    def add_all(self, other: Tally) -> None:
        for outcome, count in other.counts.items():
            self.counts[outcome] += count

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def outcome_of(valid: bool, accepted: bool) -> Outcome:
    if valid == accepted:
        return Outcome.CORRECT
    return Outcome.OVER if valid else Outcome.UNDER
