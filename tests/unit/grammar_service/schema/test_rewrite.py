"""A rewritten schema allows exactly the values that the original does."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from grammar_service.errors import GrammarError
from grammar_service.schema.json_schema import schema_of
from grammar_service.schema.rewrite import rewrite
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of, sample, schema_spec
from tests.unit.grammar_service.schema.random_schemas import random_document, random_instance
from tests.unit.grammar_service.schema.sequences import RewriteValidator

WAYS = [True, False]


def rewrite_of(document: Any, closed: bool, may_narrow: bool = False) -> Any:
    """The rewrite, None where there is none."""
    try:
        rewritten = rewrite(schema_of(document, closed).normal, may_narrow)
    except GrammarError:
        return None
    return rewritten if isinstance(rewritten, dict) else None


@given(st.integers(0, 2**40))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_rewrite_validates_the_same_instances(seed: int) -> None:
    choose = random.Random(seed)
    document = random_document(choose)
    rewritten = rewrite_of(document, closed=False)
    assume(rewritten is not None)
    Draft202012Validator.check_schema(rewritten)
    before, after = Draft202012Validator(document), RewriteValidator(rewritten)
    values = [random_instance(choose) for _ in range(30)]
    assert [value for value in values if before.is_valid(value) != after.is_valid(value)] == [], (document, rewritten)


@given(st.integers(0, 2**40))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_narrower_rewrite_allows_nothing_more(seed: int) -> None:
    choose = random.Random(seed)
    members = {name: random_document(choose) for name in ("a", "b")}
    kinds = [{"properties": {name: {"additionalProperties": member}}, "required": [name]} for name, member in members.items()]
    document = {"oneOf": kinds, "$defs": members["a"].pop("$defs") | members["b"].pop("$defs")}
    narrow = rewrite_of(document, closed=False, may_narrow=True)
    assume(narrow is not None and rewrite_of(document, closed=False) is None)
    before, after = Draft202012Validator(document), RewriteValidator(narrow)
    values = [random_instance(choose) for _ in range(30)]
    assert [value for value in values if after.is_valid(value) and not before.is_valid(value)] == [], (document, narrow)


def test_a_member_that_cannot_be_described_is_left_out_and_no_other() -> None:
    labels = {"type": "object", "additionalProperties": {"type": "string"}}
    kinds = [{"required": ["labels"], "properties": {"labels": labels}}, {"required": ["size"], "properties": {"size": {"minimum": 2}}}]
    document = {"type": "object", "oneOf": [*kinds, {"required": ["name"]}]}
    assert rewrite_of(document, closed=False) is None
    before, after = Draft202012Validator(document), RewriteValidator(rewrite_of(document, closed=False, may_narrow=True))
    lost = [{"name": "a", "labels": 1}]
    for value in ({"labels": {}}, {"size": 3}, {"name": 1, "size": 1}, {"labels": {}, "size": 1}, {"labels": {}, "name": 1}, {}, *lost):
        assert after.is_valid(value) == (before.is_valid(value) and value not in lost), value


@pytest.mark.parametrize("closed", WAYS)
@given(seed=st.integers(0, 2**40))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_the_chosen_backend_accepts_is_valid(closed: bool, seed: int, tokenizer: GrammarTokenizer) -> None:
    choose = random.Random(seed)
    document = random_document(choose)
    spec = replace(schema_spec(document), closed=closed)
    try:
        grammar = grammar_of(spec, tokenizer)
    except GrammarError:
        assume(False)
    validator = Draft202012Validator(document)
    values = [random_instance(choose) for _ in range(25)]
    assert [value for value in values if accepts(grammar, json.dumps(value)) and not validator.is_valid(value)] == [], document
    texts = [text for chance in range(2) if (text := sample(grammar, tokenizer, chance, most=60)) is not None]
    assert [text for text in texts if not validator.is_valid(json.loads(text))] == [], document


def test_a_closed_schema_is_never_rewritten_to_allow_more() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    rewritten = rewrite_of({"not": inner}, closed=True)
    assert not Draft202012Validator(rewritten).is_valid({"a": "x", "b": 1})


@pytest.mark.parametrize("closed", WAYS)
@pytest.mark.parametrize(
    "document",
    [
        {"oneOf": [{"properties": {f"p{index}": {"type": "string"}}, "required": [f"p{index}"]} for index in range(24)]},
        {"anyOf": [{"required": [f"p{index}"]} for index in range(20)], "unevaluatedProperties": False},
        {"allOf": [{"patternProperties": {f"(a|b)*a(a|b){{{index}}}": {"minimum": index}}} for index in range(30)]},
        {
            "properties": {
                f"n{index}": {"patternProperties": {"(a|b)*a(a|b){9}$": {}}, "propertyNames": {"pattern": "c"}} for index in range(300)
            }
        },
        {
            "$defs": {f"d{index}": {"anyOf": [{"not": {"$ref": f"#/$defs/d{index + 1}"}}, {"minimum": index}]} for index in range(60)}
            | {"d60": {}}
        },
        {"dependentRequired": {f"a{index}": [f"b{index}"] for index in range(200)}},
        {"not": {"enum": [f"value {index}" for index in range(5000)]}},
    ],
    ids=["oneOf", "unevaluated", "patterns", "many patterns", "chain of not", "dependentRequired", "not enum"],
)
def test_rewriting_ends_soon(document: Any, closed: bool) -> None:
    started = time.process_time()
    rewrite_of(document, closed)
    assert time.process_time() - started < 5


def test_a_schema_that_is_referred_to_often_is_written_once() -> None:
    part = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    places: dict[str, Any] = {f"p{number}": {"$ref": "#/$defs/part", "title": str(number)} for number in range(50)}
    rewritten = rewrite_of({"allOf": [{"properties": places}, {"required": ["p0"]}], "$defs": {"part": part}}, closed=False)
    assert len(rewritten["$defs"]) == 1


TEXTS = {"type": "array", "items": {"type": "string"}}
LABELLED = {"type": "object", "additionalProperties": TEXTS}
LISTED = {"type": "object", "properties": {"tags": TEXTS, "size": {"type": "integer"}}, "additionalProperties": False}


@pytest.mark.parametrize("outer", [{"$ref": "#/$defs/one"}, {"type": "array", "prefixItems": [{"$ref": "#/$defs/one"}]}])
def test_what_shows_only_in_writing_to_have_no_values_is_written_nowhere(outer: Any, tokenizer: GrammarTokenizer) -> None:
    """That arrays of texts are none that are no arrays of texts is not told by their bounds."""
    schema = {**outer, "$defs": {"one": {"oneOf": [LISTED, LABELLED]}}}
    rewritten = rewrite_of(schema, closed=False)
    assert False not in rewritten["$defs"].values()
    grammar = grammar_of(replace(schema_spec(schema), closed=False), tokenizer)
    around = "{}" if "$ref" in outer else "[{}]"
    for text, is_one in (
        ('{"size": 1}', True),
        ('{"label": ["a"]}', True),
        ('{"tags": ["a"]}', False),
        ("{}", False),
        ('{"tags": 1}', False),
    ):
        assert accepts(grammar, around.replace("{}", text)) == is_one, text
