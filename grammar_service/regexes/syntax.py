"""Regexes as trees."""

from __future__ import annotations

from dataclasses import dataclass

from grammar_service.regexes.classes import CodePoints
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


Node = Characters | Concatenation | Alternation | Repetition


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch at the top level: without its anchors, and whether it had them."""

    body: Concatenation
    start: bool
    end: bool


@dataclass(frozen=True, slots=True)
class Regex:
    """A parsed regex; its text means the same in every backend."""

    branches: tuple[Branch, ...]

    def full_match(self) -> str:
        """The language of `re.fullmatch`, without anchors."""
        return "|".join(render(branch.body) for branch in self.branches)

    def anchored(self) -> str:
        """The language of a search, with anchors only where the pattern has them."""
        return "|".join(f"{'^' if b.start else ''}(?:{render(b.body)}){'$' if b.end else ''}" for b in self.branches)


def render(node: Node) -> str:
    """The text of a tree, in time linear in it; no recursion, since nobody bounds how deep patterns nest."""
    text: list[str] = []
    waiting: list[Node | str] = [node]
    while waiting:
        match waiting.pop():
            case str(ready):
                text.append(ready)
            case Characters(points):
                text.append(character_class(points))
            case Concatenation(parts):
                waiting.extend(reversed(parts))
            case Repetition(inner, quantifier=quantifier):
                waiting += [quantifier, inner]
            case Alternation(branches):
                waiting.append(")")
                for branch in reversed(branches):
                    waiting += [branch, "|"]
                waiting[-1] = "(?:"
    return "".join(text)
