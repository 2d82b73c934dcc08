"""Lists of choices of four sizes, and everyday regexes."""

from __future__ import annotations

import json
from random import Random

from grammar_service.spec import GrammarKind, GrammarSpec

SIZES = (10, 100, 1000, 10_000)
_SYLLABLES = "ka lo mer tin sa vel dor fi nu gra pe hol wi ster am ba cho ri ten ul".split()
_STRING = r'"([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"'
_REGEXES = {
    "yes or no": "yes|no",
    "number": r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?",
    "date and time": r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})",
    "UUID": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "telephone": r"\+?\d{1,3}[ -]?\(?\d{2,4}\)?([ -]?\d{2,4}){2,3}",
    "semantic version": r"v?\d+\.\d+\.\d+(-[a-z0-9.]+)?",
    "mail address": r"[a-z0-9._%+-]+@[a-z0-9-]+(\.[a-z0-9-]+)+",
    "identifier": "[A-Za-z_][A-Za-z0-9_]{0,30}",
    "amount": r"(EUR|USD|GBP) [1-9]\d{0,2}(,\d{3})*\.\d{2}",
    "a line": r"[^\n]+",
    "a short line": r"[^\n]{1,80}",
    "a reason": r"(yes|no), because [a-z ,]{1,100}\.",
    "JSON string": _STRING,
    "three JSON strings": rf'\{{"name": {_STRING}, "city": {_STRING}, "job": {_STRING}\}}',
}


def specs(seed: int) -> dict[str, GrammarSpec]:
    """Choices are two or three made-up words each."""
    chance = Random(seed)
    found = {f"{size:,} choices": GrammarSpec(GrammarKind.CHOICE, json.dumps(_phrases(size, chance))) for size in SIZES}
    return {**found, **{name: GrammarSpec(GrammarKind.REGEX, text) for name, text in _REGEXES.items()}}


def _phrases(count: int, chance: Random) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        words = ("".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(chance.randint(1, 3)))
        found[" ".join(words).capitalize()] = None
    return list(found)
