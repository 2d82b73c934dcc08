"""Which rules of a grammar are recursive."""

from __future__ import annotations

from collections.abc import Sequence


def inverted(names: Sequence[set[int]]) -> list[set[int]]:
    """By rule, the rules that name it; `names` has the rules that each one names."""
    users: list[set[int]] = [set() for _ in names]
    for rule, named in enumerate(names):
        for other in named:
            users[other].add(rule)
    return users


def in_circles(names: Sequence[set[int]]) -> set[int]:
    """The rules that lead back to themselves, and those on a way from one circle to another: what is left when all that names none, or
    is named by none, has been taken away again and again."""
    left = [set(named) for named in names]
    users = inverted(left)
    rules = set(range(len(names)))
    waiting = [rule for rule in rules if not left[rule] or not users[rule]]
    while waiting:
        rule = waiting.pop()
        if rule not in rules:
            continue
        rules.remove(rule)
        for user in users[rule]:
            left[user].discard(rule)
        for named in left[rule]:
            users[named].discard(rule)
        waiting += [user for user in users[rule] if not left[user]]
        waiting += [named for named in left[rule] if not users[named]]
    return rules
