"""What a matcher says is forced: what every text goes on with."""

from __future__ import annotations

import pytest

from grammar_service.backends import CompiledGrammar, Matcher, backend_named
from grammar_service.backends.bounded_whitespace import BoundedWhitespace
from grammar_service.spec import COMPACT, FLEXIBLE, MAX_WHITESPACE, STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, grammar_of, ids_of, schema_spec
from tests.tokenizers.tiny_tokenizer import OTHER_STOP_ID, STOP_ID, VOCAB_SIZE

BACKENDS = ["xgrammar", "llguidance"]
NAMED = '{"properties": {"name": {"type": "string"}}, "required": ["name"]}'


def after(grammar: CompiledGrammar, text: str) -> Matcher:
    matcher = grammar.matcher(None, 0)
    assert all(matcher.accept(token) for token in ids_of(text))
    return matcher


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("kind", "text", "whitespace", "prefix"),
    [
        (GrammarKind.JSON_SCHEMA, NAMED, STANDARD, b'{"name": "'),
        (GrammarKind.JSON_SCHEMA, NAMED, COMPACT, b'{"name":"'),
        (GrammarKind.JSON_SCHEMA, NAMED, FLEXIBLE, b"{"),
        (GrammarKind.JSON_SCHEMA, '{"properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}', STANDARD, b'{"ok": '),
        (GrammarKind.JSON_SCHEMA, '{"properties": {"name": {"type": "string"}}}', STANDARD, b"{"),
        (GrammarKind.JSON_SCHEMA, '{"type": ["integer", "boolean"]}', STANDARD, b""),
        (GrammarKind.CHOICE, '["red", "rest"]', STANDARD, b"re"),
        (GrammarKind.CHOICE, '["only"]', STANDARD, b"only"),
        (GrammarKind.CHOICE, '["re", "red"]', STANDARD, b"re"),
        (GrammarKind.REGEX, "ab{3}c?", STANDARD, b"abbb"),
        (GrammarKind.LARK, 'start: "abc" /[0-9]/', STANDARD, b"abc"),
        (GrammarKind.CHOICE, '["ümlaut", "über"]', STANDARD, "ü".encode()),
        (GrammarKind.CHOICE, '["ü", "ö"]', STANDARD, b"\xc3"),
    ],
)
def test_the_start_is_what_every_text_begins_with(
    backend: str, kind: GrammarKind, text: str, whitespace: str, prefix: bytes, tokenizer: GrammarTokenizer
) -> None:
    spec = GrammarSpec(kind, text, whitespace)
    if backend_named(backend).unsupported(spec):
        pytest.skip("this backend leaves this constraint to the other")
    assert grammar_of(spec, tokenizer, backend).matcher(None, 0).forced_bytes() == prefix


@pytest.mark.parametrize("backend", BACKENDS)
def test_where_the_text_may_end_nothing_is_forced(backend: str, tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(GrammarSpec(GrammarKind.CHOICE, '["ab", "abba"]'), tokenizer, backend)
    assert after(grammar, "a").forced_bytes() == b"b"
    assert after(grammar, "ab").forced_bytes() == b""
    assert after(grammar, "abb").forced_bytes() == b"a"
    assert after(grammar, "abba").forced_bytes() == b""


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_terminated_matcher_forces_nothing(backend: str, tokenizer: GrammarTokenizer) -> None:
    matcher = after(grammar_of(GrammarSpec(GrammarKind.CHOICE, '["ab", "abba"]'), tokenizer, backend), "ab")
    assert matcher.accept(STOP_ID)
    assert matcher.forced_bytes() == b""
    matcher.rollback(2)
    assert matcher.forced_bytes() == b"ab"


@pytest.mark.parametrize("backend", BACKENDS)
def test_asking_changes_nothing(backend: str, tokenizer: GrammarTokenizer) -> None:
    asked, other = (after(grammar_of(schema_spec({"type": "boolean"}), tokenizer, backend), "t") for _ in range(2))
    assert asked.forced_bytes() == asked.forced_bytes() == b"rue"
    assert allowed(asked, VOCAB_SIZE) == allowed(other, VOCAB_SIZE)
    asked.rollback(1)
    assert asked.forced_bytes() == b""


@pytest.mark.parametrize("backend", BACKENDS)
def test_other_stop_tokens_force_the_same(backend: str, tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(GrammarSpec(GrammarKind.CHOICE, '["only"]'), tokenizer, backend)
    assert grammar.matcher([OTHER_STOP_ID], 0).forced_bytes() == b"only"


@pytest.mark.parametrize("backend", BACKENDS)
def test_whitespace_beyond_its_bound_is_not_forced(backend: str, tokenizer: GrammarTokenizer) -> None:
    inner = grammar_of(GrammarSpec(GrammarKind.REGEX, '\\{ {40}"( ){40}"\\}'), tokenizer, backend).matcher(None, 0)
    matcher = BoundedWhitespace(inner, tokenizer.spaces)
    assert matcher.forced_bytes() == b"{" + b" " * MAX_WHITESPACE
    assert all(matcher.accept(token) for token in ids_of("{" + " " * MAX_WHITESPACE))
    assert matcher.forced_bytes() == b""
