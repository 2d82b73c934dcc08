"""Whether a set may run out of strings: an object of names, an array of items."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from grammar_service.regexes.string_set import StringSet


def never_runs_out(strings: StringSet) -> bool:
    """Whether, however a string begins that is in the set, endlessly many strings of the set begin so: then there is always one more."""
    targets = [{target for _, target in moves} for moves in strings.moves]
    live = leading(targets, strings.accepting)
    return live == endless(targets, live)


def leading(targets: Sequence[set[int]], ends: Collection[int]) -> set[int]:
    """The states that lead to one of `ends`."""
    sources, found, waiting = _sources(targets), set(ends), [*ends]
    while waiting:
        more = sources[waiting.pop()] - found
        found |= more
        waiting += more
    return found


def endless(targets: Sequence[set[int]], states: set[int]) -> set[int]:
    """Those of the states that have a way without end through others: what is left when states that lead to none of the rest are taken."""
    sources, left = _sources(targets), set(states)
    ways = {state: len(targets[state] & left) for state in left}
    waiting = [state for state, count in ways.items() if not count]
    while waiting:
        left.remove(end := waiting.pop())
        for state in sources[end] & left:
            ways[state] -= 1
            if not ways[state]:
                waiting.append(state)
    return left


def _sources(targets: Sequence[set[int]]) -> list[set[int]]:
    """Of each state, those that lead to it at once."""
    sources: list[set[int]] = [set() for _ in targets]
    for state, after in enumerate(targets):
        for target in after:
            sources[target].add(state)
    return sources
