"""Strings without quotes: those that are allowed have nothing that ends them, and are not mistaken for anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar_service.backends import CompiledGrammar
from grammar_service.regexes.string_set import StringSet
from grammar_service.schema.algebra.strings import Strings
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.tags.raw_strings import raw_string
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of
from tests.tokenizers.tiny_tokenizer import tiny_tokenizer

EXCLUDES = ("</p>", "<p", "｜D")
TEXTS = st.text("</p>D｜ a1٣0_.+-eEtrufalsTRUFALSnu\n\t\x1c\x85\u00a0é日", max_size=9)
KINDS = [frozenset[str](), frozenset({"number"}), frozenset({"boolean"}), frozenset({"number", "boolean"})]


def parsed_as(text: str) -> set[str]:
    """What vLLM's parser would take it for (0.32: `tool_parsers/utils.py`), as far as Python decides that."""
    kinds = {"boolean"} if text.lower().strip() in ("true", "1", "false", "0") else set()
    readers: tuple[Callable[[str], object], ...] = (int, float)
    for read in readers:
        with suppress(ValueError):
            if read(text) not in (float("inf"), float("-inf")) and read(text) == read(text):
                kinds.add("number")
    return kinds


def compiled(strings: Strings | StringSet, mistaken_for: frozenset[str] = frozenset()) -> CompiledGrammar:
    text = json.dumps({"type": "structural_tag", "format": raw_string(strings, EXCLUDES, mistaken_for)})
    return grammar_of(GrammarSpec(GrammarKind.STRUCTURAL_TAG, text), GrammarTokenizer.from_huggingface(tiny_tokenizer()))


@pytest.fixture(scope="module", params=KINDS, ids=lambda kinds: "+".join(sorted(kinds)) or "any")
def of_kind(request: pytest.FixtureRequest) -> tuple[frozenset[str], CompiledGrammar]:
    return request.param, compiled(Strings(), request.param)


@given(text=TEXTS)
@settings(max_examples=300, deadline=None)
def test_no_string_is_mistaken_or_has_an_excluded_text(text: str, of_kind: tuple[frozenset[str], CompiledGrammar]) -> None:
    kinds, grammar = of_kind
    has_mark = any(mark in text for mark in EXCLUDES)
    if has_mark or parsed_as(text) & kinds:
        assert not accepts(grammar, text)
    elif not kinds:
        assert accepts(grammar, text)


@pytest.mark.parametrize("text", ["", "a", "Tokyo", "fox", "t", "hello 12", "é", "日本 5", "nobody"])
def test_everyday_strings_stay_beside_numbers_and_booleans(text: str) -> None:
    assert accepts(compiled(Strings(), KINDS[-1]), text)


@pytest.mark.parametrize(("least", "most"), [(0, 3), (2, None), (2, 4), (0, 500)])
def test_lengths_are_kept(least: int, most: int | None) -> None:
    grammar = compiled(Strings(least, most))
    for length in (0, 1, 2, 3, 4, 5, 499, 500, 501):
        assert accepts(grammar, "a" * length) is (least <= length and (most is None or length <= most))
    assert not accepts(grammar, "a</p>b")


def test_patterns_and_values_are_kept() -> None:
    grammar = compiled(StringSet.of_strings(["yes", "a</p>", "5"]), frozenset({"number"}))
    assert [accepts(grammar, text) for text in ("yes", "a</p>", "5", "no")] == [True, False, False, False]
