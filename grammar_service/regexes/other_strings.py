"""A regex of all strings but a few: linear in their characters, where an automaton's complement may be far larger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from grammar_service.regexes.classes import points
from grammar_service.regexes.rendering import character_class

MAX_EXCLUDED_LENGTH = 60
"""Characters of one excluded string: each is a level of parentheses, and llguidance 1.7.6 reads no pattern with 62 of them."""
_ANYTHING = r"[\s\S]*"


@dataclass(slots=True)
class _Node:
    """A trie of the excluded strings; `ends`: one of them ends here."""

    children: dict[str, _Node] = field(default_factory=dict)
    ends: bool = False


def pattern_of_others(excluded: Iterable[str]) -> str:
    """A JSON Schema `pattern` that matches exactly the strings that are not among `excluded`, of at most MAX_EXCLUDED_LENGTH characters
    each."""
    root = _Node()
    for text in excluded:
        node = root
        for char in text:
            node = node.children.setdefault(char, _Node())
        node.ends = True
    return f"^{_to_regex(root)}$"


def _to_regex(node: _Node) -> str:
    if not node.children:
        return rf"[\s\S]{_ANYTHING}" if node.ends else _ANYTHING
    others = character_class(points("".join(node.children)).complement().minus_surrogates())
    known = [character_class(points(char)) + _to_regex(child) for char, child in node.children.items()]
    return f"(?:{'|'.join([*known, others + _ANYTHING])})" + ("" if node.ends else "?")
