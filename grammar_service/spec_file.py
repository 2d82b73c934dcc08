"""A constraint in a file, as commands take it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grammar_service.errors import UnusableFile
from grammar_service.spec import STANDARD, GrammarKind, GrammarSpec

_KINDS = {
    ".lark": GrammarKind.LARK,
    ".ebnf": GrammarKind.EBNF,
    ".gbnf": GrammarKind.EBNF,
    ".regex": GrammarKind.REGEX,
    ".txt": GrammarKind.REGEX,
}
SUFFIXES = frozenset({".json", *_KINDS})


def read_spec(path: Path, kind: GrammarKind | None = None, whitespace: str = STANDARD) -> GrammarSpec:
    """The constraint in a file; `kind` None guesses it, see `kind_of`. A regex or a choice ends before the file's last line break.

    Raises:
        UnusableFile: it cannot be read, is not UTF-8, or its kind cannot be guessed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableFile(f"cannot read {path}: {error}") from None
    kind = kind or kind_of(path, text)
    return GrammarSpec(kind, text.removesuffix("\n") if kind is GrammarKind.REGEX else text, whitespace)


def kind_of(path: Path, text: str) -> GrammarKind:
    """The kind that suffix and text suggest: a JSON file is a structural tag, a list of choices, or else a JSON Schema.

    Raises UnusableFile: the suffix says nothing.
    """
    if path.suffix == ".json":
        return _json_kind(text)
    if path.suffix not in _KINDS:
        raise UnusableFile(f"{path}: the suffix says nothing of the kind of grammar; name it with --kind")
    return _KINDS[path.suffix]


def _json_kind(text: str) -> GrammarKind:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return GrammarKind.JSON_SCHEMA  # whose reader says what is wrong with it
    if isinstance(value, list) and all(isinstance(choice, str) for choice in value):
        return GrammarKind.CHOICE
    if isinstance(value, dict) and (value.get("type") == "structural_tag" or {"structures", "triggers"} <= value.keys()):
        return GrammarKind.STRUCTURAL_TAG
    return GrammarKind.JSON_SCHEMA
