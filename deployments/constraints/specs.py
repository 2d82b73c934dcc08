"""From the value of one constraint field to a `GrammarSpec`. All raise ApiError, which names the field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deployments.constraints.json_writer import write_json
from deployments.errors import bad_request
from grammar_service.spec import GrammarKind, GrammarSpec


def _json(value: Any, field: str, whitespace: str) -> GrammarSpec:
    if not isinstance(value, dict | bool | str):
        raise bad_request(f"'{field}' must be a JSON Schema, as an object or as text.", field)
    return GrammarSpec(GrammarKind.JSON_SCHEMA, value if isinstance(value, str) else write_json(value), whitespace)


def _json_object(value: Any, field: str, whitespace: str) -> GrammarSpec:
    if value is not True:
        raise bad_request(f"'{field}' must be true; leave it out for free text.", field)
    return GrammarSpec(GrammarKind.JSON_OBJECT, "", whitespace)


def _regex(value: Any, field: str, _: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.REGEX, text_of(value, field))


def _choice(value: Any, field: str, _: str) -> GrammarSpec:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise bad_request(f"'{field}' must be an array of strings.", field)
    return GrammarSpec(GrammarKind.CHOICE, write_json(value))


def _grammar(value: Any, field: str, _: str) -> GrammarSpec:
    text = text_of(value, field)
    # The two notations are told apart as vLLM does: only EBNF (GBNF) defines a rule with `::=`.
    return GrammarSpec(GrammarKind.EBNF if "::=" in text else GrammarKind.LARK, text)


def _ebnf(value: Any, field: str, _: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.EBNF, text_of(value, field))


def _structural_tag(value: Any, field: str, _: str) -> GrammarSpec:
    if not isinstance(value, dict | str):
        raise bad_request(f"'{field}' must be a structural tag, as an object or as text.", field)
    return GrammarSpec(GrammarKind.STRUCTURAL_TAG, value if isinstance(value, str) else write_json(value))


def text_of(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise bad_request(f"'{field}' must be text.", field)
    return value


SPECS: dict[str, Callable[[Any, str, str], GrammarSpec]] = {
    "json": _json,
    "json_object": _json_object,
    "regex": _regex,
    "choice": _choice,
    "grammar": _grammar,
    "ebnf": _ebnf,
    "structural_tag": _structural_tag,
}
