"""No object of an answer has a name twice, on either backend, whatever tokens reach across."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import jsonschema
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from grammar_service.backends import CompiledGrammar, Matcher, backend_named
from grammar_service.backends.batch_fill import BatchFiller
from grammar_service.backends.guarded import Guarded
from grammar_service.spec import COMPACT, FLEXIBLE, STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.corpus.random_schemas import random_schema
from load_tests.corpus.random_walks import Walker
from tests.driving import allowed, grammar_of, schema_spec
from tests.tokenizers.quoting_tokenizer import quoting_tokenizer

BACKENDS = ["xgrammar", "llguidance"]
LAYOUTS = [("xgrammar", STANDARD), ("xgrammar", FLEXIBLE), ("llguidance", COMPACT), ("llguidance", STANDARD), ("llguidance", FLEXIBLE)]
OBJECT = {"type": "object"}
SET = {"type": "array", "uniqueItems": True}
OPEN: list[dict[str, Any]] = [
    {"type": "object"},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {
        "type": "object",
        "properties": {"a": {"type": "object"}, "b": {"type": "object"}},
        "required": ["b"],
        "additionalProperties": {"type": "object"},
    },
    {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "boolean"}}}},
    {"type": "object", "additionalProperties": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}, "minProperties": 1},
]


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties][:1], "additionalProperties": False}


FLAG = {"type": "boolean"}
DISTINCT: list[dict[str, Any]] = [
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    {"type": "array", "items": {"type": "integer", "minimum": 0}, "uniqueItems": True, "minItems": 2},
    {"type": "array", "items": {"type": "number"}, "uniqueItems": True},
    {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "uniqueItems": True, "maxItems": 6},
    {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/set"}, "b": {"type": "array", "items": {"type": "boolean"}}},
        "required": ["a", "b"],
        "additionalProperties": {"$ref": "#/$defs/set"},
        "$defs": {"set": {"type": "array", "items": {"type": "string", "pattern": "^[ab]+"}, "uniqueItems": True}},
    },
    {"type": "array", "items": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "string"}, "uniqueItems": True}]}},
    {"type": "array", "items": {"enum": ["a", "ab", "abb", 'a"', "b\\", "é", "😀", "ba"]}, "uniqueItems": True},
    {"type": "array", "items": {"enum": ["a", "ab", "abb", "b", "ba", ""]}, "uniqueItems": True, "minItems": 6},
    {"type": "array", "uniqueItems": True},
    # CountedStrings that may run out, and such as may only at their ends.
    *(
        {"type": "array", "items": items, "uniqueItems": True, "minItems": least}
        for items, least in (
            ({"type": "string", "pattern": "^[ab]{1,2}$"}, 6),
            ({"type": "string", "pattern": '^a?[b"\\\\]$'}, 0),
            ({"type": "string", "pattern": "^[é-ëa😀-😂]{1,2}$"}, 9),
            ({"type": "string", "maxLength": 2}, 3),
            ({"type": "string", "minLength": 1, "maxLength": 200}, 1),
            ({"type": "string", "pattern": "^(ab?|b+a)$"}, 3),
            ({"anyOf": [{"enum": ["a", "ab", "é\n"]}, {"type": "string", "pattern": "^b[ab]$"}]}, 5),
            ({"allOf": [{"pattern": "^[ab]+$"}, {"pattern": "b$"}], "type": "string", "maxLength": 3}, 7),
            ({"type": "string", "format": "ipv4"}, 2),
        )
    ),
    *(
        {"type": "array", "items": items, "uniqueItems": True}
        for items in (
            {"type": "object"},
            {"type": "array", "items": {"type": "boolean"}},
            {"enum": ["a", 1, None, True, "ab", "1"]},
            {"anyOf": [{"type": "boolean"}, {"type": "null"}, {"type": "object"}]},
            {"anyOf": [{"type": "string"}, closed({"a": {"type": "string"}})]},
            {"type": ["string", "object", "array", "integer"]},
            {"anyOf": [{"type": "number"}, {"enum": ["a", "b"]}]},
            {"type": ["string", "boolean"]},
            closed({"a": {"type": "object"}, "b": {"type": "boolean"}}),
            closed({"a": {"type": "string"}, "b": {"enum": ["a", "b"]}, "ab": {"type": "array"}, "ba": {"type": "boolean"}}),
            closed({"a": {"type": "string"}, "b": {"type": "number"}, "ab": {"type": "integer"}}),
            closed({"a": {"type": "string"}, "b": {"type": "boolean"}}),
            closed({"a": {"type": "boolean"}, "b": {"enum": ["a", "b", "ab"]}}),
            closed({"a": {"type": "integer"}, "b": {"type": "number"}}),
            closed({"a": {"anyOf": [{"type": "null"}, closed({"b": {"type": "string"}})]}}),
            {
                "anyOf": [
                    closed({"a": {"const": 1}, "b": {"type": "boolean"}}),
                    closed({"a": {"const": 2}, "b": {"type": "boolean"}, "c": {}}),
                ]
            },
            closed({"a": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "b": {"type": "boolean"}}),
            # CountedStrings and numbers that may run out, where others follow or not.
            closed({"a": {"type": "string", "maxLength": 1}}),
            closed({"a": {"type": "string", "pattern": "^[ab]{1,2}$"}, "b": {"type": "boolean"}}),
            closed({"a": {"type": "boolean"}, "b": {"type": "string", "pattern": "^(a|b[ab])$"}, "ab": {"enum": ["a", "ab", "\u00e9\n"]}}),
            closed({"a": {"type": "integer", "minimum": -1}, "b": {"type": "integer", "minimum": -2, "maximum": 11}}),
            closed({"a": {"anyOf": [{"type": "integer", "maximum": -9}, {"type": "integer", "minimum": 1}]}}),
            closed({"a": {"type": "string", "format": "date-time"}}),
            closed({"a": {"anyOf": [{"type": "string", "maxLength": 2}, closed({"b": {"type": "string", "pattern": "^a?b$"}})]}}),
            {"type": ["string", "null"], "minLength": 1, "maxLength": 2},
            {"anyOf": [closed({"a": {"const": "a"}, "b": FLAG}), closed({"a": {"const": "ab"}, "b": FLAG, "ab": FLAG})]},
            closed({"a": {"enum": ["a\n", "aé", "a/"]}, "b": {"type": "string", "pattern": "^[\na]$"}}),
            closed({"a": {"enum": ["a", "b"]}}),
            {"anyOf": [{"type": "string", "pattern": "^a?b?$"}, {"type": "integer", "minimum": 0, "maximum": 2}, closed({"a": FLAG})]},
        )
    ),
    # Where another branch lets anything stand in the place.
    *(
        {"anyOf": [closed({"a": {"type": "array", "items": items, "uniqueItems": True}}), OBJECT]}
        for items in ({"type": "string"}, {"type": "integer"}, {"type": "object"}, {"type": ["string", "array"]})
    ),
    {
        "type": "array",
        "items": closed({"a": {"type": "string", "pattern": "^[ab]$"}, "b": {"type": "integer", "minimum": 1, "maximum": 2}}),
        "uniqueItems": True,
        "minItems": 6,
    },
    {
        "type": "array",
        "items": {"type": "array", "items": {"type": "string", "pattern": "^[ab]$"}, "maxItems": 2},
        "uniqueItems": True,
        "minItems": 7,
    },
    {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}, "uniqueItems": True, "minItems": 7},
    {"type": "array", "items": {"type": "array", "items": {"type": "number"}, "maxItems": 2}, "uniqueItems": True, "minItems": 4},
    {
        "type": "array",
        "items": {"type": "array", "prefixItems": [{"type": "array", "items": FLAG, "maxItems": 2}, FLAG], "items": False, "minItems": 2},
        "uniqueItems": True,
    },
]


@pytest.fixture(scope="module")
def quoting() -> GrammarTokenizer:
    return quoting_tokenizer()


def ids(text: str, tokenizer: GrammarTokenizer) -> list[int]:
    """A token a byte."""
    return [tokenizer.vocabulary.index(bytes([byte])) for byte in text.encode()]


def begun(grammar: CompiledGrammar, text: str, tokenizer: GrammarTokenizer) -> Matcher:
    matcher = grammar.matcher(None, 0)
    for token in ids(text, tokenizer):
        assert matcher.accept(token), text
    return matcher


def texts(matcher: Matcher, tokenizer: GrammarTokenizer) -> set[bytes]:
    return {tokenizer.vocabulary[token] for token in allowed(matcher, tokenizer.vocab_size)}


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len({name for name, _ in pairs}) == len(pairs), pairs
    return dict(pairs)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_name_is_not_closed_a_second_time(backend: str, quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(GrammarSpec(GrammarKind.JSON_OBJECT, "", FLEXIBLE), quoting, backend)
    assert b'"' not in texts(begun(grammar, '{"ab":1,"ab', quoting), quoting)
    assert {b'"', b'b":', b'b"'} & texts(begun(grammar, '{"ab":1,"a', quoting), quoting) == {b'"'}
    assert b'"a":' not in texts(begun(grammar, '{"a":1,', quoting), quoting)
    assert b', "a":' not in texts(begun(grammar, '{"a":1', quoting), quoting)
    assert b'}, "a":' not in texts(begun(grammar, '{"a":{"b":1', quoting), quoting)
    assert b'{"a": 1, "a": ' not in texts(begun(grammar, '{"b":', quoting), quoting)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_name_of_another_object_or_a_value_may_be_the_same(backend: str, quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(GrammarSpec(GrammarKind.JSON_OBJECT, "", FLEXIBLE), quoting, backend)
    assert b'"' in texts(begun(grammar, '{"a":"a', quoting), quoting)
    assert b'"' in texts(begun(grammar, '{"a":{"a', quoting), quoting)
    assert b'"' in texts(begun(grammar, '{"a":[{"a":1},{"a', quoting), quoting)
    assert b'{"a": {"a":' in texts(begun(grammar, '{"b":', quoting), quoting)


def test_spellings_of_one_name_are_one_name(quoting: GrammarTokenizer) -> None:
    # llguidance spells only control characters by their number.
    grammar = grammar_of(GrammarSpec(GrammarKind.JSON_OBJECT, "", FLEXIBLE), quoting, "xgrammar")
    matcher = begun(grammar, '{"a":1,"\\u0', quoting)
    assert b'061":' not in texts(matcher, quoting)
    assert b'"' not in texts(begun(grammar, '{"\\u0061":1,"a', quoting), quoting)
    assert b'"' not in texts(begun(grammar, '{"\\ud83d\\ude00":1,"\U0001f600', quoting), quoting)
    assert b'e00":' not in texts(begun(grammar, '{"\U0001f600":1,"\\ud83d\\ud', quoting), quoting)


@pytest.mark.parametrize(("backend", "whitespace"), LAYOUTS)
@pytest.mark.parametrize("schema", [None, *OPEN, *DISTINCT])
def test_masks_are_what_is_accepted_and_walks_end_with_nothing_twice(
    backend: str, whitespace: str, schema: dict[str, Any] | None, quoting: GrammarTokenizer
) -> None:
    spec = GrammarSpec(GrammarKind.JSON_OBJECT, "", whitespace) if schema is None else schema_spec(schema, whitespace)
    if backend_named(backend).unsupported(spec):
        pytest.skip("this backend leaves this schema to the other")
    grammar = grammar_of(spec, quoting, backend)
    for seed in range(4):
        matcher = grammar.matcher(None, 0)
        assert isinstance(matcher, Guarded)
        text = walk(matcher, quoting, seed)
        if text is not None:
            jsonschema.validate(json.loads(text, object_pairs_hook=unique), schema or {"type": "object"})


def walk(matcher: Guarded, tokenizer: GrammarTokenizer, seed: int) -> str | None:
    """A random text with few different names; at every token the mask is compared with what is accepted."""
    choose, text = Random(seed), b""
    stop = tokenizer.stop_token_ids[0]
    for step in range(150):
        options = allowed(matcher, tokenizer.vocab_size)
        assert options, text
        if step % 7 == 0:
            # llguidance's own mask leaves out tokens where it forces others, and accepts them.
            assert options == {token for token in allowed(matcher.inner, tokenizer.vocab_size) if tried(matcher, token)}, text
        likely = [token for token in options if set(tokenizer.vocabulary[token]) <= set(b'ab01.-e"\\u: ,{}[]')]
        closing = [token for token in options if tokenizer.vocabulary[token] in (b"}", b'"', b'"}', b"1", b'":', b'": ', b"]")]
        token = choose.choice(sorted((step > 80 and closing) or likely or options))
        if stop in options:
            return text.decode()
        assert matcher.accept(token)
        text += tokenizer.vocabulary[token]
    return None


def tried(matcher: Matcher, token: int) -> bool:
    accepted = matcher.accept(token)
    if accepted:
        matcher.rollback(1)
    return accepted


def test_an_item_does_not_come_twice(quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(schema_spec(DISTINCT[4], FLEXIBLE), quoting)
    assert b'"' not in texts(begun(grammar, '["ab","ab', quoting), quoting)
    assert b'"a"' not in texts(begun(grammar, '["a",', quoting), quoting)
    assert {b",", b"]", b", 1"}.isdisjoint(texts(begun(grammar, "[12,12", quoting), quoting))
    assert {b"0", b" ", b"1"} & texts(begun(grammar, "[0,-", quoting), quoting) == {b"1"}
    assert {b"1, 1", b"0, 0"} & texts(begun(grammar, "[", quoting), quoting) == {b"1, 1"}
    assert b"0]" not in texts(begun(grammar, "[10,1", quoting), quoting)
    assert b'"' in texts(begun(grammar, '["a","b', quoting), quoting)


def test_listed_items_run_out(quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(schema_spec({**DISTINCT[8], "minItems": 0}, FLEXIBLE), quoting)
    assert b"b" not in texts(begun(grammar, '["b","ba","', quoting), quoting)
    assert {b"b", b"ba"} & texts(begun(grammar, '["b","', quoting), quoting) == {b"b", b"ba"}
    assert {b'"', b"b", b'b"'} & texts(begun(grammar, '["b","ab","abb","a', quoting), quoting) == {b'"'}
    all_but_one = '["a","ab","abb","b","ba","'
    assert texts(begun(grammar, all_but_one, quoting), quoting) >= {b'"', b'"   '}
    assert b'","' not in texts(begun(grammar, all_but_one, quoting), quoting)
    assert b"," not in texts(begun(grammar, all_but_one + '"', quoting), quoting)


def test_counted_items_run_out_wherever_they_have_begun(quoting: GrammarTokenizer) -> None:
    items = {"type": "string", "pattern": "^(a[ab]|b{1,3})$"}
    grammar = grammar_of(schema_spec({"type": "array", "items": items, "uniqueItems": True}, FLEXIBLE), quoting)
    assert {b"a", b"b"} & texts(begun(grammar, '["aa","', quoting), quoting) == {b"a", b"b"}
    assert {b"a", b"b"} & texts(begun(grammar, '["aa","a', quoting), quoting) == {b"b"}
    assert {b"a", b"ab", b"b"} & texts(begun(grammar, '["aa","ab","', quoting), quoting) == {b"b"}
    assert {b"b", b'"'} & texts(begun(grammar, '["bbb","b', quoting), quoting) == {b"b", b'"'}
    assert {b"b", b'"'} & texts(begun(grammar, '["bbb","bb', quoting), quoting) == {b'"'}
    assert b"," not in texts(begun(grammar, '["bbb","bb","b","aa","ab"', quoting), quoting)
    taken = begun(grammar, '["bbb","bb","b","aa","ab"', quoting)
    taken.rollback(3)
    assert {b"a", b"b"} & texts(taken, quoting) == {b"a"}


def test_objects_that_may_run_out_of_names_are_left_alone_and_no_others(quoting: GrammarTokenizer) -> None:
    loose = {"type": "object", "patternProperties": {"^[ab]$": {"type": "object"}}, "additionalProperties": False}
    grammar = grammar_of(schema_spec({"type": "object", "additionalProperties": loose}, FLEXIBLE), quoting)
    assert b'"' in texts(begun(grammar, '{"c":{"a":{},"a', quoting), quoting)
    assert b'"' not in texts(begun(grammar, '{"c":{"a":{"b":1,"b', quoting), quoting)
    assert b'"' not in texts(begun(grammar, '{"c":{"a":{"b":1}},"c', quoting), quoting)


def test_numbers_are_compared_by_value(quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(schema_spec(DISTINCT[3], FLEXIBLE), quoting)
    assert b"," not in texts(begun(grammar, "[1,1.0", quoting), quoting)
    assert b"]" not in texts(begun(grammar, "[0.0,-0", quoting), quoting)
    assert b"," in texts(begun(grammar, "[1,1.01", quoting), quoting)


@pytest.mark.parametrize("backend", BACKENDS)
def test_exponents_grow_no_longer_than_is_accepted(backend: str, quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(
        schema_spec({"type": "array", "uniqueItems": True}, COMPACT if backend == "llguidance" else FLEXIBLE), quoting, backend
    )
    assert b"7" not in texts(begun(grammar, '[{"a":1e123456', quoting), quoting)
    assert b"1234567" not in texts(begun(grammar, '[{"a":1e', quoting), quoting)
    assert b"7" in texts(begun(grammar, '[{"a":1e12345', quoting), quoting)


def test_what_is_begun_behind_an_item_must_be_able_to_end(quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(schema_spec({**DISTINCT[9], "items": {"anyOf": [{"type": "number"}, {"enum": ["a", "b"]}]}}, FLEXIBLE), quoting)
    assert b', "' in texts(begun(grammar, '["a", 1', quoting), quoting)
    assert b', "' not in texts(begun(grammar, '["a", "b", 1', quoting), quoting)
    assert {b'","a', b'","'} & texts(begun(grammar, '["a', quoting), quoting) == {b'","'}


def test_objects_that_a_member_tells_apart_are_left_as_long_as_one_of_them_has_a_way(quoting: GrammarTokenizer) -> None:
    kinds = {"anyOf": [closed({"a": {"const": "a"}, "b": FLAG}), closed({"a": {"const": "b"}, "ab": FLAG, "ba": FLAG})]}
    spent = '[{"a":"a"},{"a":"a","b":true},{"a":"a","b":false},{"a":'
    matcher = begun(grammar_of(schema_spec({**SET, "items": kinds}, COMPACT), quoting, "llguidance"), spent, quoting)
    assert b'"' in texts(matcher, quoting)
    assert matcher.accept(ids('"', quoting)[0])
    assert {b"a", b"b"} & texts(matcher, quoting) == {b"b"}


def test_words_can_be_written_where_another_branch_lets_anything_stand(quoting: GrammarTokenizer) -> None:
    either = {
        "anyOf": [
            closed({"a": {**SET, "items": {"type": "integer", "minimum": 0}}}),
            closed({"b": FLAG}) | OBJECT | {"additionalProperties": True},
        ]
    }
    grammar = grammar_of(schema_spec(either, COMPACT), quoting, "llguidance")
    assert b"e" in texts(begun(grammar, '{"b":true,"a":[tru', quoting), quoting)
    assert b"," not in texts(begun(grammar, '{"b":true,"a":[true,"x",1,1', quoting), quoting)


def test_escapes_that_have_begun_lead_to_what_is_left(quoting: GrammarTokenizer) -> None:
    items = closed({"a": {"enum": ["a\n", "a\u0001", "ab"]}})
    for schema in ({**SET, "items": items}, {**SET, "items": {"enum": ["a\n", "a\u0001", "ab"]}}):
        grammar = grammar_of(schema_spec(schema, COMPACT), quoting, "llguidance")
        first = '["a\\n","' if schema["items"] is not items else '[{"a":"a\\n"},{"a":"'
        assert {b"n", b"u"} & texts(begun(grammar, first + "a\\", quoting), quoting) == {b"u"}
        assert {b"a", b"A", b"1"} & texts(begun(grammar, first + "a\\u000", quoting), quoting) == {b"1"}


@pytest.mark.parametrize("backend", BACKENDS)
def test_taken_back_tokens_leave_no_names(backend: str, quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(GrammarSpec(GrammarKind.JSON_OBJECT, "", FLEXIBLE), quoting, backend)
    matcher = begun(grammar, '{"a":1,', quoting)
    before = texts(matcher, quoting)
    for text in ('"b":{"a":1},"c', '"b', '"b":1}'):
        tokens = ids(text, quoting)
        assert all(matcher.accept(token) for token in tokens)
        matcher.rollback(len(tokens))
        assert texts(matcher, quoting) == before
    assert all(matcher.accept(token) for token in ids('"b":{"b":1},"', quoting))
    matcher.reset()
    assert all(matcher.accept(token) for token in ids('{"a":1,"b', quoting))
    assert b'"' in texts(matcher, quoting)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_forbidden_token_changes_nothing(backend: str, quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(GrammarSpec(GrammarKind.JSON_OBJECT, "", FLEXIBLE), quoting, backend)
    matcher = begun(grammar, '{"a":1,"a', quoting)
    before = texts(matcher, quoting)
    assert not matcher.accept(ids('"', quoting)[0])
    assert texts(matcher, quoting) == before
    assert all(matcher.accept(token) for token in ids('b":2}', quoting))


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_of_many_matchers_at_once_are_the_same(backend: str, quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(GrammarSpec(GrammarKind.JSON_OBJECT, "", FLEXIBLE), quoting, backend)
    matchers = [begun(grammar, text, quoting) for text in ('{"a":1,"a', '{"a":1,"b', '{"ab":1,"a', '{"a":1,')]
    together = torch.zeros(4, (quoting.vocab_size + 31) // 32, dtype=torch.int32)
    alone = together.clone()
    BatchFiller(quoting, 2).fill(matchers, together, range(4))
    for row, matcher in enumerate(matchers):
        matcher.fill(alone, row)
    assert together.equal(alone)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"type": "string"}}},
            "required": ["a"],
            "additionalProperties": False,
        },
        {"type": "string"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "null"}, {"type": "integer"}]}}},
    ],
)
def test_nothing_is_guarded_where_all_names_are_listed(backend: str, schema: dict[str, Any], quoting: GrammarTokenizer) -> None:
    assert not isinstance(grammar_of(schema_spec(schema), quoting, backend).matcher(None, 0), Guarded)


@given(seed=st.integers(0, 2**32), backend=st.sampled_from(BACKENDS))
def test_random_schemas_are_walked_to_the_end_with_nothing_twice(seed: int, backend: str, quoting: GrammarTokenizer) -> None:
    schema = random_schema(Random(seed))
    spec = schema_spec(schema, COMPACT if backend == "llguidance" else FLEXIBLE)
    assume(not backend_named(backend).unsupported(spec))
    text = Walker(quoting, Random(seed)).walk(grammar_of(spec, quoting, backend))
    jsonschema.validate(json.loads(text, object_pairs_hook=unique), schema)
