"""A Lark grammar that would be weakened, or would hurt the engine that loads it, is refused."""

from __future__ import annotations

import json
import time

import pytest

from grammar_service.backends import select_backend
from grammar_service.backends.llguidance.backend import LlguidanceBackend
from grammar_service.backends.llguidance.lark import lark_faults
from grammar_service.backends.llguidance.load_cost import MAX_LOAD_BYTES, bounded_load
from grammar_service.errors import GrammarTooLarge, InvalidGrammar, UnsupportedGrammar
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of


def lark(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.LARK, text)


@pytest.mark.parametrize(
    "text",
    [
        'start: %json {"type": "integer"}',
        'start: "a" b\nb: %json{"type": "array", "uniqueItems": true}',
        "start: %json " + json.dumps({"enum": list(range(50_000))}),
    ],
)
def test_a_schema_inside_lark_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedGrammar, match="kind json_schema"):
        select_backend(lark(text))


@pytest.mark.parametrize("text", ['{"grammars": [{"json_schema": {"type": "integer"}}]}', ' \n{"grammars": []}'])
def test_the_librarys_own_json_is_no_lark(text: str) -> None:
    with pytest.raises(UnsupportedGrammar, match="begins with a rule"):
        select_backend(lark(text))


@pytest.mark.parametrize(
    "text",
    [
        'start: "a"{1000000000}',
        'start: "a"{ 3 , 1000000000 }',
        'start: "a"{100001,}',
        "start: /a{1000000000}/",
        'start: "a"~1000000000',
        'start: "a"{' + "9" * 5000 + "}",
    ],
)
def test_huge_counts_are_refused_before_anything_is_built(text: str) -> None:
    with pytest.raises(UnsupportedGrammar, match="repetition"):
        select_backend(lark(text))


def test_counts_that_are_text_or_small_are_none_of_that(tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(lark('start: "{1000000000}" "a"{2,3}'), tokenizer)
    assert accepts(grammar, "{1000000000}aa")
    assert not accepts(grammar, "{1000000000}a")


@pytest.mark.parametrize(
    "text",
    [
        'start: A\nA: (("a"{1000}){1000}){1000}',
        "start: /((a{1000}){1000}){1000}/",
        "start: " + " | ".join(f'"value {index}"' for index in range(40_000)),
    ],
    ids=["nested terminal", "nested regex", "wide"],
)
def test_what_takes_an_engine_too_long_to_load_is_too_large(text: str, tokenizer: GrammarTokenizer) -> None:
    with pytest.raises(GrammarTooLarge, match="loading the grammar"):
        LlguidanceBackend().compile(lark(text), tokenizer)


def test_what_takes_an_engine_too_much_memory_is_too_large() -> None:
    with bounded_load():
        small = bytearray(1 << 20)
    with pytest.raises(GrammarTooLarge, match="memory"):
        _take(MAX_LOAD_BYTES + (16 << 20))
    assert len(small) < MAX_LOAD_BYTES


def _take(size: int) -> None:
    with bounded_load():
        held = bytearray(size)
        for page in range(0, size, 4096):
            held[page] = 1


def test_a_grammar_that_never_ends_is_refused(tokenizer: GrammarTokenizer) -> None:
    with pytest.raises(InvalidGrammar, match="items"):
        LlguidanceBackend().compile(lark('start: "a" x\nx: "b" x'), tokenizer)


@pytest.mark.parametrize("text", ['start: /"/{99999999}', 'start: "a\n  | /"/ ~ 99999999', 'start: "\\"{99999999}'])
def test_a_quote_that_nobody_closes_hides_no_count(text: str) -> None:
    assert lark_faults(text)


def test_quotes_that_nobody_closes_are_looked_through_once() -> None:
    """Each would be looked for the end of, from each of them on."""
    started = time.process_time()
    assert lark_faults("start: " + '"\\' * 100_000)
    assert time.process_time() - started < 0.5
