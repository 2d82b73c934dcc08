"""A list of choices as a grammar."""

from __future__ import annotations

from grammar_service.errors import InvalidGrammar
from grammar_service.schema.json_text import parse_json

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def choices_of(text: str) -> list[str]:
    """The choices in order, each once.

    Raises:
        InvalidGrammar: not a JSON array of one or more non-empty strings.
    """
    value = parse_json(text, "the list of choices")
    if not isinstance(value, list) or not value:
        raise InvalidGrammar("choices must be a non-empty JSON array of strings")
    for index, choice in enumerate(value):
        if not isinstance(choice, str) or not choice or "\0" in choice:
            raise InvalidGrammar("a choice must be a non-empty string without NUL", f"/{index}")
    return list(dict.fromkeys(str(choice) for choice in value))


def choice_grammar(choices: list[str]) -> str:
    """EBNF whose root is exactly one of the choices."""
    return "root ::= " + " | ".join(_quoted(choice) for choice in choices)


def _quoted(choice: str) -> str:
    return '"' + "".join(_ESCAPES.get(char) or (char if char.isprintable() else _code(char)) for char in choice) + '"'


def _code(char: str) -> str:
    return f"\\U{ord(char):08x}" if ord(char) > 0xFFFF else f"\\u{ord(char):04x}"
