"""Rules that no text ever ends: `a ::= "x" a`. A grammar that leads into one has states in which nothing is allowed.

The question is the one of productive symbols in a context-free grammar (Hopcroft and Ullman, 1979, section 4.4).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

import xgrammar

from grammar_service.backends.xgrammar.classes import characters
from grammar_service.backends.xgrammar.runs import Kind, SerializedGrammar

_Expression = tuple[int, list[int]]
_WITHOUT_TEXT = frozenset({Kind.TAG_DISPATCH})


def endless_rule(grammar: xgrammar.Grammar) -> str | None:
    """The name of the first rule of the grammar that has no end, None where all have one; time linear in the grammar. Rules that the root
    does not lead to are left alone, where that can be told."""
    read = SerializedGrammar.of(grammar)
    expressions, bodies = read.expressions, read.bodies
    ending = _ending(expressions, bodies)
    told = _reached(expressions, bodies, read.root_rule_id)
    return next((str(read.rules[rule][0]) for rule in sorted(told) if bodies[rule] not in ending), None)


def _ending(expressions: Sequence[_Expression], bodies: Sequence[int]) -> set[int]:
    """The expressions that some text matches."""
    users: dict[int, list[int]] = defaultdict(list)
    waits: list[int] = []
    for index, (kind, content) in enumerate(expressions):
        parts = _parts(kind, content, bodies)
        for part in parts:
            users[part].append(index)
        is_empty = kind == Kind.CLASS and not characters(content)
        waits.append(1 if is_empty or kind == Kind.CHOICES else len(parts))
    ready = deque(index for index, count in enumerate(waits) if not count)
    ending = set(ready)
    while ready:
        for user in users[ready.popleft()]:
            waits[user] -= 1
            if waits[user] <= 0 and user not in ending:
                ending.add(user)
                ready.append(user)
    return ending


def _parts(kind: int, content: list[int], bodies: Sequence[int]) -> list[int]:
    """The expressions that an expression needs: all of them, or one of its choices."""
    match kind:
        case Kind.SEQUENCE | Kind.CHOICES:
            return content
        case Kind.RULE:
            return [bodies[content[0]]]
        case Kind.REPEAT:
            return [bodies[content[0]]] if content[1] else []
        case _:
            return []


def _reached(expressions: Sequence[_Expression], bodies: Sequence[int], root: int) -> set[int]:
    """The rules that a text may be in; all, where tags that start in free text lead to rules as well."""
    if any(kind in _WITHOUT_TEXT for kind, _ in expressions):
        return set(range(len(bodies)))
    reached, waiting = {root}, [bodies[root]]
    while waiting:
        kind, content = expressions[waiting.pop()]
        if kind in (Kind.SEQUENCE, Kind.CHOICES):
            waiting += content
        elif kind in (Kind.RULE, Kind.REPEAT) and content[0] not in reached:
            reached.add(content[0])
            waiting.append(bodies[content[0]])
    return reached
