"""Whether an object may run out of names."""

from __future__ import annotations

from collections.abc import Collection

from grammar_service.regexes.string_set import StringSet


def never_runs_out(names: StringSet) -> bool:
    """Whether, however a name begins that is in the set, endlessly many names of the set begin so: then there is always one more."""
    targets = [{target for _, target in moves} for moves in names.moves]
    live = _leading(targets, names.accepting)
    return live == _endless(targets, live)


def _leading(targets: list[set[int]], ends: Collection[int]) -> set[int]:
    """The states that lead to one of `ends`."""
    found = set(ends)
    while more := {state for state, after in enumerate(targets) if state not in found and not found.isdisjoint(after)}:
        found |= more
    return found


def _endless(targets: list[set[int]], states: set[int]) -> set[int]:
    """Those of the states that have a way without end through others: what is left when states that lead to none of the rest are taken."""
    left = set(states)
    while ends := {state for state in left if targets[state].isdisjoint(left)}:
        left -= ends
    return left
