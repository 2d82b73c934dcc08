"""How many rules of a grammar may begin at one place of a text.

xgrammar (0.2.8) predicts all of them at once, and takes the square of their number: with 1,000 that is 10 MiB and 7 ms for each text that
comes to that place, with 2,500 it is 200 MiB and 0.3 s. The rules are the left corners of a context-free grammar (Rosenkrantz and Lewis,
1970).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import xgrammar

from grammar_service.backends.xgrammar.runs import Kind, SerializedGrammar

MAX_LEFT_CORNERS = 1000
"""An object with so many optional properties has as many."""


def has_too_many_left_corners(grammar: xgrammar.Grammar) -> bool:
    """Whether at some place more than MAX_LEFT_CORNERS rules may begin. Takes a grammar that has not been compiled."""
    return _LeftCorners(SerializedGrammar.of(grammar)).exceed(MAX_LEFT_CORNERS)


class _LeftCorners:
    """`_direct`: by rule, the rules that may stand first in it; `_empty`: those that the empty text matches."""

    def __init__(self, grammar: SerializedGrammar) -> None:
        self._expressions = grammar.expressions
        self._bodies = grammar.bodies
        self._empty = set[int]()
        self._find_empty()
        self._direct = [set(self._first(body)) for body in self._bodies]

    def exceed(self, most: int) -> bool:
        """Whether more than `most` may begin at some place."""
        # What begins where a rule of `within` does also begins at a place that has been looked at.
        within, seen = set[int](), set[frozenset[int]]()
        for place in self._places():
            if place in seen or (len(place) == 1 and place <= within):
                continue
            seen.add(place)
            found = self._left_corners(place, most)
            if len(found) > most:
                return True
            within |= found
        return False

    def _places(self) -> Iterator[frozenset[int]]:
        """The rules that may stand behind each part of a sequence, and at the start of each rule."""
        for kind, content in self._expressions:
            if kind == Kind.SEQUENCE:
                yield from (frozenset(self._first_of(content, at)) for at in range(len(content)) if self._is_behind_text(content, at))
        yield from map(frozenset, self._direct)

    def _is_behind_text(self, parts: Sequence[int], at: int) -> bool:
        """Else what begins there also begins further ahead."""
        return at > 0 and not self._may_be_empty(parts[at - 1])

    def _left_corners(self, rules: frozenset[int], most: int) -> set[int]:
        """All that begin where these do; of more than `most`, some."""
        found, waiting = set(rules), list(rules)
        while waiting and len(found) <= most:
            new = self._direct[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    def _first(self, index: int) -> Iterator[int]:
        kind, content = self._expressions[index]
        match kind:
            case Kind.RULE | Kind.REPEAT:
                yield content[0]
            case Kind.CHOICES:
                for part in content:
                    yield from self._first(part)
            case Kind.SEQUENCE:
                yield from self._first_of(content, 0)

    def _first_of(self, parts: Sequence[int], at: int) -> Iterator[int]:
        for place in range(at, len(parts)):
            yield from self._first(parts[place])
            if not self._may_be_empty(parts[place]):
                return

    def _find_empty(self) -> None:
        """A rule may be empty because of rules behind it or of rules before it: look both ways, again and again."""
        rules, before = range(len(self._bodies)), -1
        while before < len(self._empty):
            before = len(self._empty)
            for rule in (*rules, *reversed(rules)):
                if rule not in self._empty and self._may_be_empty(self._bodies[rule]):
                    self._empty.add(rule)

    def _may_be_empty(self, index: int) -> bool:
        kind, content = self._expressions[index]
        match kind:
            case Kind.EMPTY | Kind.STARRED_CLASS | Kind.TAG_DISPATCH:
                return True
            case Kind.BYTES:
                return not content
            case Kind.RULE:
                return content[0] in self._empty
            case Kind.REPEAT:
                return not content[1] or content[0] in self._empty
            case Kind.CHOICES:
                return any(map(self._may_be_empty, content))
            case Kind.SEQUENCE:
                return all(map(self._may_be_empty, content))
            case _:
                return False
