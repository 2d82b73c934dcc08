"""Formats and patterns beside one another and beside lengths, values and negations: what the chosen backend lets through."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from grammar_service.backends import select_backend
from grammar_service.errors import GrammarError
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of, schema_spec
from tests.unit.grammar_service.regexes.emitted_patterns import OTHERS, ZOD
from tests.unit.grammar_service.schema.formats.instances import INVALID, VALID

TEXT = {"type": "string"}
CASES: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({**TEXT, "format": "date", "pattern": ZOD["date"][0]}, ["2024-02-29"], ["2023-02-29", "x"]),
    ({**TEXT, "format": "date", "pattern": "^2024"}, ["2024-02-29"], ["2023-02-28", "2024"]),
    ({**TEXT, "format": "email", "minLength": 8, "maxLength": 9}, ["a@bcd.ef"], ["a@b", "a@example.com", "aaaaaaaa"]),
    ({**TEXT, "format": "email", "pattern": ZOD["email"][0]}, ["a.b@c.de"], ["a@b", "a..b@c.de"]),
    ({"type": ["string", "null"], "format": "hostname", "maxLength": 5}, ["a.b", None], ["a..b", "abcdef", 1]),
    ({"allOf": [{**TEXT, "format": "uri"}, {**TEXT, "format": "uri-reference"}]}, ["a:b"], ["b", "//a"]),
    ({**TEXT, "not": {"format": "date"}}, ["", "2023-02-29"], ["2024-02-29"]),
    ({**TEXT, "not": {"format": "time"}}, ["12:00", "x"], ["12:00:00Z", "22:59:60-01:00"]),
    ({"oneOf": [{**TEXT, "format": "date"}, {**TEXT, "format": "date-time"}]}, ["2024-02-29", "2024-02-29T00:00:00Z"], ["2023-02-29"]),
    ({"oneOf": [{**TEXT, "format": "ipv4"}, {**TEXT, "format": "ipv6"}]}, ["10.0.0.1", "::1"], ["10.0.0", ":"]),
    ({**TEXT, "format": "date", "enum": ["2024-02-29", "2023-02-29"]}, ["2024-02-29"], ["2023-02-29"]),
    ({"anyOf": [{**TEXT, "format": "uuid"}, {"type": "integer"}]}, [VALID["uuid"][0], 1], ["x"]),
    ({**TEXT, "pattern": "^(?!foo)(?=.*r$)[a-z]+$"}, ["bar", "fur"], ["foor", "fob"]),
    ({**TEXT, "pattern": "^(?!foo)[a-z]+$", "maxLength": 3, "not": {"const": "bar"}}, ["fob"], ["foo", "bar", "fobs"]),
    ({**TEXT, "pattern": r"^\p{Lu}\p{L}*$"}, ["Éa", "A"], ["a", "A1"]),
    ({**TEXT, "pattern": OTHERS["words"][0]}, ["a cat.", "dog"], ["cats"]),
    (
        {"type": "object", "patternProperties": {"^(?!x)[a-z]+$": {"type": "integer"}}, "additionalProperties": False},
        [{"ab": 1}],
        [{"xa": 1}],
    ),
    ({"type": "object", "propertyNames": {"format": "date"}, "maxProperties": 1}, [{"2024-02-29": 1}], [{"a": 1}, {"2023-02-29": 1}]),
    ({"type": "object", "propertyNames": {"pattern": "^(?!_)"}, "additionalProperties": {"type": "null"}}, [{"a": None}], [{"_a": None}]),
    ({**TEXT, "format": "int32"}, ["anything"], [1]),
    # A class of all control characters and no backslash, or no quote, must not take their escapes for members.
    ({**TEXT, "pattern": r"^[^\\]*$"}, ["a\n", '"'], ["\\", "a\\"]),
    ({**TEXT, "pattern": r'^[^"\n]+$'}, ["\\", "\t"], ['"', "\n"]),
    ({**TEXT, "pattern": r'^(?:[^"\x00-\x0f]|[\x01-\x0f])+$'}, ["\n"], ['"']),
    (
        {"type": "object", "properties": {'"': {"type": "null"}}, "additionalProperties": {"type": "integer"}},
        [{'"': None, "a": 1}],
        [{'"': 1}],
    ),
]


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(("schema", "valid", "invalid"), CASES, ids=[json.dumps(schema)[:70] for schema, _, _ in CASES])
def test_only_what_holds_all_of_it_is_let_through(
    schema: Any, valid: list[Any], invalid: list[Any], closed: bool, tokenizer: GrammarTokenizer
) -> None:
    grammar = grammar_of(replace(schema_spec(schema), closed=closed), tokenizer)
    assert [value for value in valid if not accepts(grammar, json.dumps(value, ensure_ascii=False))] == []
    assert [value for value in invalid if accepts(grammar, json.dumps(value, ensure_ascii=False))] == []


@pytest.mark.parametrize("name", sorted(VALID))
def test_each_format_is_enforced_by_the_backend(name: str, tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(schema_spec({**TEXT, "format": name}), tokenizer)
    assert [text for text in VALID[name] if not accepts(grammar, json.dumps(text, ensure_ascii=False))] == []
    assert [text for text in INVALID[name] if accepts(grammar, json.dumps(text, ensure_ascii=False))] == []


@pytest.mark.parametrize("name", sorted(VALID))
def test_a_format_that_only_annotates_lets_everything_through(name: str, tokenizer: GrammarTokenizer) -> None:
    schema = {**TEXT, "format": name, "maxLength": 20}
    spec = replace(schema_spec(schema), formats=False)
    assert select_backend(spec).name == "xgrammar"
    assert accepts(grammar_of(spec, tokenizer), '"no such thing"')


@pytest.mark.parametrize("name", [*ZOD, *OTHERS])
def test_emitted_patterns_are_enforced_by_the_backend(name: str, tokenizer: GrammarTokenizer) -> None:
    pattern, inside, outside = {**ZOD, **OTHERS}[name]
    grammar = grammar_of(schema_spec({**TEXT, "pattern": pattern}), tokenizer)
    assert [text for text in inside if not accepts(grammar, json.dumps(text, ensure_ascii=False))] == []
    assert [text for text in outside if accepts(grammar, json.dumps(text, ensure_ascii=False))] == []


HOSTILE = [
    {f"p{n}": {**TEXT, "pattern": f"^(?!(?:a|b)*a(?:a|b){{9}}{n}).*$"} for n in range(200)},
    {f"p{n}": {**TEXT, "pattern": r"^(?:(?!(?:a|b)*a(?:a|b){20}c).)*" + str(n)} for n in range(200)},
    {f"p{n}": {**TEXT, "pattern": r"(?=\p{L}*" + str(n) + r")\p{N}(?!\p{P})"} for n in range(200)},
]


@pytest.mark.parametrize("properties", HOSTILE, ids=["large complements", "refused ones", "large classes"])
def test_many_hostile_patterns_are_judged_soon(properties: Any) -> None:
    started = time.process_time()
    with suppress(GrammarError):
        select_backend(schema_spec({"type": "object", "properties": properties}))
    assert time.process_time() - started < 20
