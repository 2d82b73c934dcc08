"""Regexes as trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grammar_service.regexes.classes import ANY, CodePoints
from grammar_service.regexes.rendering import character_class


@dataclass(frozen=True, slots=True)
class Characters:
    """One of some code points, surrogates not among them."""

    points: CodePoints


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One after another; no parts: the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """A group: one of its branches."""

    branches: tuple[Concatenation, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """`least` to `most` times (None: any number) the inner node, which is no concatenation and no repetition. `quantifier` is how the
    regex says so: what is compiled for a key stays the same text."""

    inner: Node
    least: int
    most: int | None
    quantifier: str


@dataclass(frozen=True, slots=True)
class Assertion:
    """Look-around: a condition on the text from here on (`ahead`), which must begin with the inner group, or on the text up to here, which
    must end with it; `negative`: must not."""

    inner: Alternation
    ahead: bool
    negative: bool


Node = Characters | Concatenation | Alternation | Repetition | Assertion


def _nothing_beside(ahead: bool) -> Assertion:
    return Assertion(Alternation((Concatenation((Characters(ANY.minus_surrogates()),)),)), ahead, negative=True)


START, END = _nothing_beside(False), _nothing_beside(True)
"""ECMA-262's `^` and `$` wherever they stand."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch at the top level: without its anchors, and whether it had them."""

    body: Concatenation
    start: bool
    end: bool


@dataclass(frozen=True, slots=True)
class Regex:
    """A parsed regex. `asserts`: there is an Assertion in it, so that it is no text for a backend (see `plain`); any other one's text
    means the same in every backend."""

    branches: tuple[Branch, ...]
    asserts: bool = False

    def full_match(self) -> str:
        """The language of `re.fullmatch`, without anchors."""
        return "|".join(render(branch.body) for branch in self.branches)

    def whole(self) -> Regex:
        """The same for whole texts: as if each branch had both anchors."""
        return Regex(tuple(Branch(branch.body, start=True, end=True) for branch in self.branches), self.asserts)

    def anchored(self, character: Callable[[CodePoints], str] = character_class) -> str:
        """The language of a search, with anchors only where the pattern has them; `character` writes a class."""
        return "|".join(f"{'^' if b.start else ''}(?:{render(b.body, character)}){'$' if b.end else ''}" for b in self.branches)


def render(node: Node, character: Callable[[CodePoints], str] = character_class) -> str:
    """The text of a tree, in time linear in it; no recursion, since nobody bounds how deep patterns nest."""
    text: list[str] = []
    waiting: list[Node | str] = [node]
    while waiting:
        match waiting.pop():
            case str(ready):
                text.append(ready)
            case Characters(points):
                text.append(character(points))
            case Concatenation(parts):
                waiting.extend(reversed(parts))
            case Repetition(inner, quantifier=quantifier):
                waiting += [quantifier, inner]
            case Assertion():
                raise AssertionError("a regex with look-around has no text")
            case Alternation(branches):
                waiting.append(")")
                for branch in reversed(branches):
                    waiting += [branch, "|"]
                waiting[-1] = "(?:"
    return "".join(text)
