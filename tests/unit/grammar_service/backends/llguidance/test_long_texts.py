"""The library computes no masks inside of texts that are too long, and is not given them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grammar_service.backends import backend_named, select_backend
from grammar_service.backends.llguidance.load_cost import MAX_TEXT
from grammar_service.errors import UnsupportedGrammar
from grammar_service.spec import GrammarKind, GrammarSpec

LONG, LONGEST = "n" * (MAX_TEXT + 1), "n" * MAX_TEXT


def named(text: str) -> dict[str, Any]:
    return {"type": "object", "properties": {text: {"type": "boolean"}}, "additionalProperties": False}


@pytest.mark.parametrize(
    "make", [named, lambda text: {"const": text}, lambda text: {"enum": [1, [{"a": text}]]}, lambda text: {"const": {text: 1}}]
)
def test_a_long_text_of_a_schema_is_left_to_the_other_library(make: Any) -> None:
    specs = [GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(make(text))) for text in (LONGEST, LONG)]
    assert [bool(backend_named("llguidance").unsupported(spec)) for spec in specs] == [False, True]


def test_a_long_name_is_served() -> None:
    assert select_backend(GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(named(LONG)))).name == "xgrammar"


def test_a_description_may_be_as_long_as_it_likes() -> None:
    spec = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps({"type": "string", "description": LONG}))
    assert backend_named("llguidance").unsupported(spec) == []


def test_a_long_literal_of_a_grammar_that_only_this_library_reads_is_refused() -> None:
    with pytest.raises(UnsupportedGrammar, match="too long"):
        select_backend(GrammarSpec(GrammarKind.LARK, f'start: "{LONG}"'))
    assert select_backend(GrammarSpec(GrammarKind.LARK, f'start: "{LONGEST[2:]}"')).name == "llguidance"
