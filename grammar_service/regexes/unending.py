"""Whether a set may run out of strings: an object of names, an array of items."""

from __future__ import annotations

from collections.abc import Collection

from grammar_service.regexes.string_set import StringSet


def never_runs_out(strings: StringSet) -> bool:
    """Whether, however a string begins that is in the set, endlessly many strings of the set begin so: then there is always one more."""
    targets = [{target for _, target in moves} for moves in strings.moves]
    live = leading(targets, strings.accepting)
    return live == endless(targets, live)


def leading(targets: list[set[int]], ends: Collection[int]) -> set[int]:
    """The states that lead to one of `ends`."""
    found = set(ends)
    while more := {state for state, after in enumerate(targets) if state not in found and not found.isdisjoint(after)}:
        found |= more
    return found


def endless(targets: list[set[int]], states: set[int]) -> set[int]:
    """Those of the states that have a way without end through others: what is left when states that lead to none of the rest are taken."""
    left = set(states)
    while ends := {state for state in left if targets[state].isdisjoint(left)}:
        left -= ends
    return left
