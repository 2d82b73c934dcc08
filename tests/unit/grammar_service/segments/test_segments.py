"""The rules by which forced text becomes forced tokens, one by one."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import CompiledGrammar
from grammar_service.segments import Segment, Segmenter
from grammar_service.spec import COMPACT, STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import grammar_of, schema_spec
from tests.segment_walk import Walk, walk_of
from tests.tokenizers.tiny_tokenizer import OTHER_STOP_ID, STOP_ID, USER_ID
from tests.tokenizers.trained_tokenizers import contractions, digits_in_threes, sentences, words

Start = Callable[..., Walk]


@pytest.fixture(params=["xgrammar", "llguidance"])
def start(request: pytest.FixtureRequest, tokenizer: GrammarTokenizer) -> Start:
    """A walk in the language of a regex, of choices if there are several, on the tiny tokenizer if no other is given."""

    def start(*texts: str, tokenizer: GrammarTokenizer = tokenizer, most_tokens: int = 256) -> Walk:
        regex = len(texts) == 1
        spec = GrammarSpec(GrammarKind.REGEX, texts[0]) if regex else GrammarSpec(GrammarKind.CHOICE, json.dumps(texts))
        return walk_of(grammar_of(spec, tokenizer, request.param), tokenizer, Segmenter(tokenizer, most_tokens))

    return start


@pytest.fixture(scope="module")
def embedded() -> GrammarTokenizer:
    return GrammarTokenizer.load(EMBEDDED_WEIGHTS)


def texts(walk: Walk) -> list[bytes]:
    """Those of the next segment's tokens."""
    return [walk.text([token]) for token in walk.segment().tokens]


def take(walk: Walk, *tokens: bytes) -> None:
    walk.take([walk.tokenizer.vocabulary.index(token) for token in tokens])


def test_a_forced_text_is_encoded_as_the_tokenizer_does(start: Start, tokenizer: GrammarTokenizer) -> None:
    assert start("true12").segment() == Segment(tuple(tokenizer.encode("true12")), True)


def test_a_text_that_ends_is_kept_whole_and_ends(start: Start) -> None:
    walk = start("tr")
    assert walk.segment().ends
    assert walk.segment() == Segment((), True)


def test_where_the_text_may_end_or_go_on_nothing_is_forced(start: Start) -> None:
    walk = start("ab(12)?")
    assert texts(walk) == [b"ab"]
    assert walk.segment() == Segment((), False)


def test_a_terminated_matcher_has_no_segment(start: Start) -> None:
    walk = start("ab")
    walk.segment()
    walk.take([STOP_ID])
    assert walk.segment() == Segment((), False)


def test_the_end_is_seen_with_other_stop_tokens(tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(GrammarSpec(GrammarKind.REGEX, "ab"), tokenizer)
    matcher = grammar.matcher([OTHER_STOP_ID], 0)
    assert Segmenter(tokenizer).find(matcher, []).ends
    assert Segmenter(tokenizer).find(grammar.matcher([OTHER_STOP_ID, STOP_ID], 0), []).ends


def test_the_last_token_is_left_if_a_longer_one_may_swallow_it(start: Start) -> None:
    assert texts(start("xtr[a-z]{3}")) == [b"x"]


def test_the_last_token_stays_if_the_grammar_forbids_the_longer_one(start: Start) -> None:
    assert texts(start("xtr[a-t]{3}")) == [b"x", b"tr"]


def test_a_token_that_begins_further_back_swallows_several(embedded: GrammarTokenizer, start: Start) -> None:
    walk = start("x tru(e|th)", tokenizer=embedded)
    assert texts(walk) == [b"x"]


def test_the_quote_before_a_free_string_is_left_only_where_a_token_joins_it_to_what_follows(embedded: GrammarTokenizer) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["small", "big"]}}, "required": ["a"]}
    walk = walk_of(grammar_of(schema_spec(schema), embedded), embedded, Segmenter(embedded))
    assert b"".join(texts(walk)) == b'{"a": "'


def test_a_segment_that_would_merge_with_what_stands_already_is_left_to_the_model(start: Start) -> None:
    walk = start("[a-z]bc")
    take(walk, b"a")
    assert walk.segment() == Segment((), False)
    take(walk, b"b")
    assert texts(walk) == [b"c"]


def test_a_segment_goes_on_after_tokens_that_are_not_canonical(start: Start) -> None:
    walk = start("[a-z]{2}true")
    take(walk, b"a", b"b")
    assert texts(walk) == [b"true"]


def test_only_whole_characters_are_forced(start: Start) -> None:
    walk = start("üx", "öx")
    assert walk.segment() == Segment((), False)
    take(walk, b"\xc3")
    assert walk.segment() == Segment((), False)
    take(walk, b"\xb6")
    assert texts(walk) == [b"x"]


def test_a_character_that_has_been_begun_is_finished(start: Start) -> None:
    walk = start("ü(x|y)")
    take(walk, b"\xc3")
    assert texts(walk) == [b"\xbc"]


def test_a_long_segment_goes_on_at_the_next_call(start: Start) -> None:
    walk = start("x{20}", most_tokens=8)
    assert [(len(segment.tokens), segment.ends) for segment in (walk.segment() for _ in range(3))] == [(8, False), (8, False), (4, True)]


def test_a_text_longer_than_is_looked_at_goes_on_as_well(start: Start) -> None:
    walk = start("x{100}y", most_tokens=4)
    while not walk.segment().ends:
        pass
    assert walk.text(walk.tokens) == b"x" * 100 + b"y"


def test_special_tokens_are_boundaries(start: Start, tokenizer: GrammarTokenizer) -> None:
    walk = start("bx")
    assert walk.segmenter.find(walk.matcher, [*tokenizer.encode("a"), USER_ID]).tokens == tuple(tokenizer.encode("bx"))


def test_the_spelling_of_a_special_token_is_text(start: Start, tokenizer: GrammarTokenizer) -> None:
    walk = start("x<\\|end\\|>y")
    assert walk.segment().ends
    assert STOP_ID not in walk.tokens
    assert walk.text(walk.tokens) == b"x<|end|>y"


@pytest.mark.parametrize("make", [sentences, words])
def test_no_space_is_put_before_a_segment(make: Callable[[], GrammarTokenizer], start: Start) -> None:
    tokenizer = make()
    assert tokenizer.vocabulary[tokenizer.encode("hello")[0]].startswith(b" ")
    walk = start("[0-9]hello world", tokenizer=tokenizer)
    take(walk, b"1")
    segment = walk.segment()
    assert segment.ends
    assert walk.text(walk.tokens) == b"1hello world"


def test_no_space_is_put_before_a_byte_level_segment() -> None:
    tokenizer = contractions(add_prefix_space=True)
    assert tokenizer.vocabulary[tokenizer.encode("hello")[0]].startswith(b" ")
    grammar = grammar_of(GrammarSpec(GrammarKind.REGEX, "hello"), tokenizer, "xgrammar")
    walk = walk_of(grammar, tokenizer, Segmenter(tokenizer))
    assert walk.segment().ends
    assert walk.text(walk.tokens) == b"hello"


def test_a_character_of_which_the_vocabulary_has_only_the_bytes_is_forced(start: Start) -> None:
    walk = start("[a-z]龍[a-z]", tokenizer=sentences())
    take(walk, b"x")
    assert texts(walk) == [b"\xe9", b"\xbe", b"\x8d"]


def test_digits_are_grouped_from_where_the_number_begins(start: Start) -> None:
    tokenizer = digits_in_threes()
    walk = start("x[0-9]345([0-9]|y)", tokenizer=tokenizer)
    take(walk, b"x", b"2")
    assert all(len(token) == 1 for token in texts(walk))
    assert texts(start("x12345(y|z)", tokenizer=tokenizer))[-1] == b"45"
    assert texts(start("x12345[0-9]", tokenizer=tokenizer))[-1] == b"123"


def test_whitespace_that_may_be_split_by_what_follows_is_left(start: Start) -> None:
    tokenizer = contractions()
    assert texts(start("x  [a-z]", tokenizer=tokenizer)) == [b"x"]
    assert texts(start("x  (\\n|\\t)", tokenizer=tokenizer)) == [b"x", b"  "]


def test_an_apostrophe_may_become_a_contraction(start: Start) -> None:
    tokenizer = contractions()
    assert texts(start("I'(m|ve)", tokenizer=tokenizer)) == [b"I"]
    assert texts(start("I'(x|z)", tokenizer=tokenizer)) == [b"I", b"'"]


def test_an_added_token_that_is_text_is_forced_or_left_where_the_matcher_refuses_it(start: Start, embedded: GrammarTokenizer) -> None:
    walk = start("x<tool_call>y", tokenizer=embedded)
    while not walk.segment().ends:
        take(walk, walk.matcher.forced_bytes()[:1])
    assert walk.text(walk.tokens) == b"x<tool_call>y"


@pytest.mark.parametrize("whitespace", [STANDARD, COMPACT])
def test_an_object_without_choices_is_one_segment(whitespace: str, tokenizer: GrammarTokenizer) -> None:
    schema = {"type": "object", "properties": {"ok": {"const": True}}, "required": ["ok"], "additionalProperties": False}
    grammar: CompiledGrammar = grammar_of(schema_spec(schema, whitespace), tokenizer)
    separators = (",", ":") if whitespace == COMPACT else (", ", ": ")
    text = json.dumps({"ok": True}, separators=separators)
    assert Segmenter(tokenizer).find(grammar.matcher(None, 0), []) == Segment(tuple(tokenizer.encode(text)), True)
