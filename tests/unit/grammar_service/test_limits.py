from __future__ import annotations

import json
import time

import pytest

from grammar_service.errors import GrammarTooLarge, InvalidGrammar
from grammar_service.limits import Limits, check_limits
from grammar_service.spec import GrammarKind, GrammarSpec

LIMITS = Limits()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (GrammarKind.JSON_SCHEMA, "{"),
        (GrammarKind.JSON_SCHEMA, "nonsense"),
        (GrammarKind.JSON_SCHEMA, ""),
        (GrammarKind.JSON_SCHEMA, '{"minimum": NaN}'),
        (GrammarKind.JSON_SCHEMA, '{"minimum": 1e999}'),
        (GrammarKind.JSON_SCHEMA, '{"type": "string", "type": "object"}'),
        (GrammarKind.JSON_SCHEMA, '{"const": "\\ud800"}'),
        (GrammarKind.JSON_SCHEMA, '{"minimum": ' + "9" * 5000 + "}"),
        (GrammarKind.CHOICE, "[]"),
        (GrammarKind.CHOICE, '["a", 1]'),
        (GrammarKind.CHOICE, '["a", ""]'),
        (GrammarKind.CHOICE, '{"a": 1}'),
        (GrammarKind.REGEX, ""),
        (GrammarKind.REGEX, "a\0b"),
        (GrammarKind.EBNF, "   "),
        (GrammarKind.LARK, "\ud800"),
        (GrammarKind.STRUCTURAL_TAG, "[1,"),
    ],
)
def test_text_that_is_nothing_of_its_kind_is_invalid(kind: GrammarKind, text: str) -> None:
    with pytest.raises(InvalidGrammar):
        check_limits(GrammarSpec(kind, text), LIMITS)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (GrammarKind.JSON_SCHEMA, '{"items":' * 10_000 + "{}" + "}" * 10_000),
        (GrammarKind.JSON_SCHEMA, "[" * 200_000),
        (GrammarKind.REGEX, "(" * 65 + "a" + ")" * 65),
        (GrammarKind.EBNF, "root ::= " + "(" * 30_000 + '"a"' + ")" * 30_000),
        (GrammarKind.LARK, "start: " + "(" * 30_000 + '"a"' + ")" * 30_000),
        (GrammarKind.CHOICE, json.dumps([str(number) for number in range(10_001)])),
        (GrammarKind.REGEX, "a" * 600_000),
        (GrammarKind.REGEX, "é" * 300_000),
    ],
)
def test_text_over_a_limit_is_too_large(kind: GrammarKind, text: str) -> None:
    with pytest.raises(GrammarTooLarge):
        check_limits(GrammarSpec(kind, text), LIMITS)


@pytest.mark.parametrize("whitespace", ["", "tabs", "indent:", "indent:-1", "indent:99", "indent:²"])
def test_unknown_whitespace_is_invalid(whitespace: str) -> None:
    with pytest.raises(InvalidGrammar, match="whitespace"):
        check_limits(GrammarSpec(GrammarKind.JSON_OBJECT, "", whitespace), LIMITS)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (GrammarKind.REGEX, r"\(" * 100 + "[(((]" * 100),
        (GrammarKind.EBNF, 'root ::= "' + "(" * 100 + '" # ' + "(" * 100),
        (GrammarKind.JSON_SCHEMA, json.dumps({"const": "[" * 1000 + '"' + "{" * 1000})),
        (GrammarKind.JSON_OBJECT, ""),
    ],
)
def test_brackets_that_are_text_do_not_count(kind: GrammarKind, text: str) -> None:
    check_limits(GrammarSpec(kind, text), LIMITS)


@pytest.mark.parametrize("text", ['\\"' * 250_000, '"' * 500_001, '"' + "\\" * 500_000, "[" + '"\\' * 200_000])
def test_hostile_quotes_cost_linear_time(text: str) -> None:
    started = time.process_time()
    with pytest.raises(InvalidGrammar):
        check_limits(GrammarSpec(GrammarKind.JSON_SCHEMA, text), LIMITS)
    assert time.process_time() - started < 2
