"""Members in any order: each name once, the required ones all there, no way that leads nowhere."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import jsonschema
import pytest

from grammar_service.backends import CompiledGrammar, select_backend
from grammar_service.backends.guarded import Guarded
from grammar_service.limits import Limits
from grammar_service.resolve import DECLARED_ORDER, resolve, resolve_relaxed
from grammar_service.spec import COMPACT, FLEXIBLE, STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.corpus.random_walks import Walker
from tests.driving import allowed, grammar_of
from tests.tokenizers.quoting_tokenizer import quoting_tokenizer
from tests.unit.grammar_service.backends.test_guarded import begun, texts, tried, unique, walk

FLAG: dict[str, Any] = {"type": "boolean"}
TEXT = {"type": "string"}


def members(properties: dict[str, Any], required: list[str], others: Any = False, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": others, **more}


NAMES = members({"a": FLAG, "ab": {"type": "integer"}, "abb": {"type": "string"}, "b": {"type": "null"}}, ["ab", "b"])
SCHEMAS = [
    NAMES,
    members({"a": FLAG, "b": FLAG}, []),
    members(
        {"a": members({"a": FLAG, "b": FLAG}, ["a", "b"]), "b": {"type": "array", "items": members({"a": FLAG, "b": FLAG}, ["b"])}}, ["b"]
    ),
    members({"a/b": FLAG, "": FLAG, "é": FLAG, "a": FLAG, "😀": FLAG}, ["a/b", "é"]),
    members({"a": {"type": "array", "items": {"type": "string", "pattern": "^[ab]{1,3}$"}, "uniqueItems": True}, "b": FLAG}, ["b"]),
    members({"a": {"enum": ["a", "b"]}, "b": {"const": {"a": 1}}, "ba": {"type": "object"}}, ["a", "ba"]),
]
ENDLESS = [
    members({"a": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}, "b": FLAG}, ["a", "b"]),
    members({"a": FLAG, "b": {"type": "integer"}}, ["b"], {"type": "string"}),
    members({"a": FLAG}, ["a"], True),
    members({"a": FLAG, "b": FLAG}, ["b"], {"type": "integer"}, minProperties=3),
]


@pytest.fixture(scope="module")
def quoting() -> GrammarTokenizer:
    return quoting_tokenizer()


def spec_of(schema: Any, whitespace: str = STANDARD) -> GrammarSpec:
    return GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), whitespace, any_order=True)


@pytest.fixture(scope="module")
def names(quoting: GrammarTokenizer) -> CompiledGrammar:
    return grammar_of(spec_of(NAMES, COMPACT), quoting)


@pytest.mark.parametrize("whitespace", [STANDARD, COMPACT, FLEXIBLE])
@pytest.mark.parametrize("schema", [*SCHEMAS, *ENDLESS])
def test_masks_are_what_is_accepted(schema: Any, whitespace: str, quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(spec_of(schema, whitespace), quoting)
    for seed in range(4):
        matcher = grammar.matcher(None, 0)
        assert isinstance(matcher, Guarded)
        if (text := walk(matcher, quoting, seed)) is not None:
            jsonschema.validate(json.loads(text, object_pairs_hook=unique), schema)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_walks_end_valid(schema: Any, quoting: GrammarTokenizer) -> None:
    grammar, walker = grammar_of(spec_of(schema), quoting), Walker(quoting, Random(1))
    for _ in range(20):
        jsonschema.validate(json.loads(walker.walk(grammar), object_pairs_hook=unique), schema)


def test_every_order_comes(names: CompiledGrammar, quoting: GrammarTokenizer) -> None:
    walker, orders = Walker(quoting, Random(2)), set()
    for _ in range(300):
        found = json.loads(walker.walk(names))
        orders.add(tuple(name for name in found if name in ("ab", "b")))
    assert orders == {("ab", "b"), ("b", "ab")}


def test_an_object_closes_when_all_required_members_are_there(names: CompiledGrammar, quoting: GrammarTokenizer) -> None:
    assert b"}" not in texts(begun(names, "{", quoting), quoting)
    assert b"}" not in texts(begun(names, '{"b":null', quoting), quoting)
    assert b"}" not in texts(begun(names, '{"abb":"a","ab":1', quoting), quoting)
    assert b"}" in texts(begun(names, '{"b":null,"ab":1', quoting), quoting)
    assert b'"}' not in texts(begun(names, '{"abb":"a', quoting), quoting)
    assert b'"}' in texts(begun(names, '{"b":null,"ab":1,"abb":"a', quoting), quoting)


def test_no_comma_follows_the_last_member(names: CompiledGrammar, quoting: GrammarTokenizer) -> None:
    all_of_them = '{"b":null,"ab":1,"a":true,"abb":"a'
    assert b'","' not in texts(begun(names, all_of_them, quoting), quoting)
    assert b"," not in texts(begun(names, all_of_them + '"', quoting), quoting)
    assert b"," in texts(begun(names, '{"b":null,"ab":1,"a":true', quoting), quoting)


def test_behind_a_backslash_masks_are_what_is_accepted_too(quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(spec_of(members({"a": TEXT, "b": TEXT}, ["a", "b"]), COMPACT), quoting)
    for before in ('{"a":"","b":"\\', '{"b":"\\', '{"a":"x\\'):
        matcher = begun(grammar, before, quoting)
        assert isinstance(matcher, Guarded)
        inner = {token for token in allowed(matcher.inner, quoting.vocab_size) if tried(matcher, token)}
        assert allowed(matcher, quoting.vocab_size) == inner, before
    assert b'\\",' not in texts(begun(grammar, '{"a":"","b":"\\', quoting), quoting)


def test_a_name_that_only_leads_to_others_goes_on(names: CompiledGrammar, quoting: GrammarTokenizer) -> None:
    assert {b'"', b"b"} & texts(begun(names, '{"a":true,"a', quoting), quoting) == {b"b"}
    assert {b"a", b"b"} & texts(begun(names, '{"a":true,"ab":1,"abb":"","', quoting), quoting) == {b"b"}
    taken = begun(names, '{"a":true,"ab":1,"abb":"","', quoting)
    taken.rollback(len(',"abb":"","'))
    assert tried(taken, quoting.vocabulary.index(b","))


def test_the_only_name_that_is_left_is_forced(names: CompiledGrammar, quoting: GrammarTokenizer) -> None:
    assert begun(names, '{"a":true,"', quoting).forced_bytes() == b""
    assert begun(names, '{"a":true,"b":null,"abb":"",', quoting).forced_bytes() == b'"ab"'
    assert begun(names, '{"a":true,"b":null,"ab":1,"a', quoting).forced_bytes() == b'bb"'


@pytest.mark.parametrize(
    ("schema", "is_kept"),
    [
        (NAMES, False),
        (members({"a": FLAG}, ["a"]), False),
        (members({"a": FLAG, "b": FLAG, "ab": FLAG}, [], maxProperties=2), True),
        (members({"a": FLAG, "b": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}}, []), False),
        (members({"a": FLAG, "b": {"type": "array", "items": members({"a": TEXT, "b": TEXT}, ["a"]), "uniqueItems": True}}, []), True),
        ({"anyOf": [members({"a": {"const": 1}, "b": FLAG}, ["a"]), members({"a": {"const": 2}, "b": FLAG}, ["a"])]}, True),
        (members({"a": members({"a": FLAG, "b": FLAG}, []), "b": {"type": ["object", "null"]}}, []), False),
        (members({f"n{number}": FLAG for number in range(101)}, []), True),
        (members({"a": FLAG, "b": FLAG}, [], patternProperties={"^x-": FLAG}), True),
        (members({"a": FLAG, 'a"': FLAG}, []), True),
        (members({"a": FLAG, "a\n": FLAG}, []), True),
        (members({"a": FLAG, "b" * 201: FLAG}, []), True),
        (members({"a": FLAG, "b": {"const": "b" * 30_000}}, []), True),
    ],
)
def test_where_the_declared_order_stays_the_answer_tells(schema: Any, is_kept: bool) -> None:
    found = resolve(spec_of(schema), Limits(), "fingerprint")
    assert [warning.code for warning in found.warnings] == [DECLARED_ORDER] * is_kept


def test_what_llguidance_does_not_serve_has_the_declared_order_on_the_other_backend() -> None:
    found = resolve(spec_of(NAMES, "indent:2"), Limits(), "fingerprint")
    assert (found.backend, [warning.code for warning in found.warnings]) == ("xgrammar", [DECLARED_ORDER])


def test_what_has_no_members_is_served_as_ever() -> None:
    found = resolve(spec_of({"enum": [0, "a"]}), Limits(), "fingerprint")
    assert (found.backend, found.warnings) == ("xgrammar", ())


def test_a_relaxed_schema_is_told_of_what_is_left_of_it() -> None:
    huge = members({"a": {"type": "integer", "minimum": 1e25}, "b": FLAG}, [])
    found = resolve_relaxed(spec_of(huge), Limits(), "fingerprint")
    assert [warning.code for warning in found.warnings] == ["checked_afterwards"]


def test_it_is_another_grammar_with_another_key() -> None:
    plain = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(NAMES))
    keys = {resolve(spec, Limits(), "fingerprint").key for spec in (plain, spec_of(NAMES))}
    assert len(keys) == 2
    assert select_backend(spec_of(NAMES)).name == "llguidance"
