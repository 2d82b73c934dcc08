"""Marks of tool calls with the suffix that a model's vocabulary has for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grammar_service.errors import InvalidGrammar
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.tags.mark_suffix import with_suffix
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import grammar_of
from tests.tokenizers.tiny_tokenizer import STOP_ID, marked_tokenizer

NAMES = ("call", "key")


def test_all_texts_of_a_format_have_it_but_schemas_and_patterns_do_not() -> None:
    given: Any = {
        "begin": "<call>a<keys>",
        "end": ["</call>", "<key>\n</key>"],
        "json_schema": {"enum": ["<call>"]},
        "pattern": "<call>",
        "excludes": ["<call", "<other>"],
    }
    found = with_suffix(given, NAMES, ["<call:x-1>", "<key:x-1>", "<call", "call:y"], "")
    assert found == {**given, "begin": "<call:x-1>a<keys>", "end": ["</call:x-1>", "<key:x-1>\n</key:x-1>"]}


def test_marks_without_a_suffix_stay() -> None:
    assert with_suffix(["<call>"], NAMES, ["<call>", "<calls:x>"], "") == ["<call>"]


@pytest.mark.parametrize("spellings", [[], ["<key:x>"], ["<call>", "<call:x>"]])
def test_a_vocabulary_without_the_mark_or_with_several_is_refused(spellings: list[str]) -> None:
    with pytest.raises(InvalidGrammar, match="<call>") as caught:
        with_suffix("<call>", NAMES, spellings, "/marks")
    assert caught.value.pointer == "/marks"


def test_a_tag_is_compiled_with_the_marks_of_the_vocabulary() -> None:
    content = {"type": "tag", "begin": "<call>", "content": {"type": "any_text", "excludes": ["<key>"]}, "end": "</call>"}
    tag = {"type": "structural_tag", "format": {"type": "suffixed", "marks": [*NAMES], "content": content}}
    vocabulary = GrammarTokenizer.from_huggingface(marked_tokenizer(["<call:x>", "</call:x>", "<key:x>"]))
    matcher = grammar_of(GrammarSpec(GrammarKind.STRUCTURAL_TAG, json.dumps(tag)), vocabulary).matcher(None, 0)
    assert all(map(matcher.accept, vocabulary.encode("<call:x>a<key>")))
    assert not matcher.accept(vocabulary.encode("<key:x>")[0])
    assert all(map(matcher.accept, [*vocabulary.encode("</call:x>"), STOP_ID]))
