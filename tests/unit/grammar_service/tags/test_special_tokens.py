"""Special tokens in structural tags: they are matched by their ids, and no text is one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transformers import AutoTokenizer

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import Matcher, select_backend
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.errors import GrammarError, GrammarTooLarge, InvalidGrammar, UnsupportedGrammar
from grammar_service.segments import Segmenter
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.tags.structural_tag import tag_faults
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, grammar_of

START, MIDDLE, END = "<|start|>", "<|middle|>", "<|done|>"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
ANSWER: dict[str, Any] = {"type": "json_schema", "json_schema": SCHEMA}


def token(spelling: str) -> dict[str, Any]:
    return {"type": "token", "token": spelling}


def text(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


def sequence(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "sequence", "elements": list(elements)}


THOUGHT = sequence(token(START), text("think"), token(MIDDLE), {"type": "any_tokens"}, token(END))
FORMAT = sequence({"type": "star", "content": THOUGHT}, token(START), text("answer"), token(MIDDLE), ANSWER)


@pytest.fixture(scope="module")
def tokenizer() -> GrammarTokenizer:
    loaded = AutoTokenizer.from_pretrained(EMBEDDED_WEIGHTS)
    loaded.add_special_tokens({"additional_special_tokens": [START, MIDDLE, END]})
    return GrammarTokenizer.from_huggingface(loaded)


def spec(format_: dict[str, Any]) -> GrammarSpec:
    return GrammarSpec(GrammarKind.STRUCTURAL_TAG, json.dumps({"type": "structural_tag", "format": format_}))


def ids(tokenizer: GrammarTokenizer, *parts: str) -> list[int]:
    """Of texts and of special tokens."""
    specials = tokenizer.special_tokens
    return [one for part in parts for one in ([specials[part]] if part in specials else tokenizer.inner.encode(part.encode()) or ())]


def matcher_behind(tokenizer: GrammarTokenizer, format_: dict[str, Any], *parts: str) -> Matcher:
    matcher = grammar_of(spec(format_), tokenizer).matcher(None, 64)
    assert all(map(matcher.accept, ids(tokenizer, *parts)))
    return matcher


def test_a_special_token_is_matched_where_it_stands_and_its_spelling_is_not(tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(spec(FORMAT), tokenizer)
    stop = tokenizer.stop_token_ids[0]
    for thought in ((), (START, "think", MIDDLE, 'well, "{', END)):
        tokens = [*ids(tokenizer, *thought, START, "answer", MIDDLE, '{"a": 1}'), stop]
        assert accepted_prefix(grammar.matcher(None, 64), tokens) == len(tokens)
    spelled = list(tokenizer.inner.encode(START.encode()) or ())
    assert accepted_prefix(grammar.matcher(None, 64), spelled) == 0
    assert allowed(grammar.matcher(None, 0), tokenizer.vocab_size) == {tokenizer.special_tokens[START]}


def test_any_tokens_are_all_but_special_ones(tokenizer: GrammarTokenizer) -> None:
    matcher = matcher_behind(tokenizer, FORMAT, START, "think", MIDDLE, "a")
    plain = {index for index, its in enumerate(tokenizer.vocabulary) if its}
    assert allowed(matcher, tokenizer.vocab_size) == plain | {tokenizer.special_tokens[END]}


def test_any_tokens_may_leave_texts_out(tokenizer: GrammarTokenizer) -> None:
    free = {"type": "any_tokens", "excludes": ["<call>", "<|"]}
    grammar = grammar_of(spec(sequence(free, {"type": "optional", "content": sequence(token(START), text("x"))})), tokenizer)
    stop = tokenizer.stop_token_ids[0]
    for told in ((), ("a <call é",), ("<cal<cal", START, "x"), (START, "x")):
        tokens = [*ids(tokenizer, *told), stop]
        assert accepted_prefix(grammar.matcher(None, 64), tokens) == len(tokens)
    for refused in (("a <call>",), ("a <call>b", START, "x"), ("<|",), ("a", MIDDLE), (START, "x", "a")):
        tokens = ids(tokenizer, *refused)
        assert accepted_prefix(grammar.matcher(None, 64), tokens) < len(tokens)


def test_a_mark_is_a_special_token_where_there_is_one(tokenizer: GrammarTokenizer) -> None:
    format_ = sequence({"type": "mark", "text": START}, {"type": "mark", "text": "<none>"})
    grammar = grammar_of(spec(format_), tokenizer)
    for told, length in (((START, "<none>"), None), (("<none>",), 0)):
        tokens = ids(tokenizer, *told)
        assert accepted_prefix(grammar.matcher(None, 64), tokens) == (len(tokens) if length is None else length)
    spelled = list(tokenizer.inner.encode(START.encode()) or ())
    assert accepted_prefix(grammar.matcher(None, 64), spelled) == 0


def test_json_has_no_special_token(tokenizer: GrammarTokenizer) -> None:
    words = {"type": "json_schema", "json_schema": {"type": "array", "items": {"type": "string"}}}
    matcher = matcher_behind(tokenizer, sequence(token(START), words), START, '["')
    assert allowed(matcher, tokenizer.vocab_size).isdisjoint(tokenizer.special_tokens.values())


def arguments(schema: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "type": "arguments",
        "json_schema": {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False},
        "before_name": f"{START} ",
        "before_string": ":",
        "before_json": ":",
        "after_value": END,
        "excludes": ["</"],
        "json_excludes": [],
        **fields,
    }


@pytest.mark.parametrize(
    ("schema", "said", "unsaid"),
    [
        ({"type": "string"}, ["", "a\nb", "<é"], ["a</b"]),
        ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "abc"], ["a", "abcd", "a<b"]),
        ({"type": ["string", "integer"]}, ["", "a", "12"], ["1a", "</"]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, ['{"b": 5}'], ["5", '{"b": "5"}']),
    ],
)
def test_arguments_stand_between_special_tokens(
    schema: dict[str, Any], said: list[str], unsaid: list[str], tokenizer: GrammarTokenizer
) -> None:
    grammar = grammar_of(spec(sequence(arguments(schema, marks=[START, END]), {"type": "any_tokens"})), tokenizer)
    for value in [*said, *unsaid]:
        tokens = ids(tokenizer, START, f" a:{value}", END)
        assert (accepted_prefix(grammar.matcher(None, 64), tokens) == len(tokens)) == (value in said), value
    matcher = matcher_behind(tokenizer, arguments(schema, marks=[START, END]), START, " a:")
    assert allowed(matcher, tokenizer.vocab_size) & set(tokenizer.special_tokens.values()) <= {tokenizer.special_tokens[END]}


def test_strings_with_markup_stand_in_a_section(tokenizer: GrammarTokenizer) -> None:
    plain, markup = ["", "a ]]> b"], ["<b>", "a & b", "a\nb", "]]<"]
    grammar = grammar_of(spec(arguments({"type": "string"}, marks=[START, END], cdata=True)), tokenizer)
    for value, is_said in [
        *((value, True) for value in plain),
        *((value, False) for value in markup),
        *((f"<![CDATA[{value}]]>", value != plain[1]) for value in [*plain, *markup]),
    ]:
        tokens = ids(tokenizer, START, f" a:{value}", END)
        assert (accepted_prefix(grammar.matcher(None, 64), tokens) == len(tokens)) == is_said, value


def test_strings_of_bounded_length_have_no_section(tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(spec(arguments({"type": "string", "maxLength": 9}, marks=[START, END], cdata=True)), tokenizer)
    for value, is_said in (("", True), ("a & b\n", True), ("a" * 10, False), ("a<b", False), ("<![CDATA[a]]>", False)):
        tokens = ids(tokenizer, START, f" a:{value}", END)
        assert (accepted_prefix(grammar.matcher(None, 64), tokens) == len(tokens)) == is_said, value


def test_tokens_are_taken_back_one_by_one(tokenizer: GrammarTokenizer) -> None:
    tokens = ids(tokenizer, START, "think", MIDDLE, "well", END, START, "answer", MIDDLE, '{"a": 1')
    matcher = grammar_of(spec(FORMAT), tokenizer).matcher(None, 64)
    masks = []
    for one in tokens:
        masks.append(allowed(matcher, tokenizer.vocab_size))
        assert matcher.accept(one)
    for mask in reversed(masks):
        matcher.rollback(1)
        assert allowed(matcher, tokenizer.vocab_size) == mask


def test_text_that_a_special_token_may_replace_is_not_forced(tokenizer: GrammarTokenizer) -> None:
    either = sequence(text("ab"), {"type": "or", "elements": [sequence(text("cd"), token(END)), token(END)]}, text("ef"))
    assert matcher_behind(tokenizer, either).forced_bytes() == b"ab"
    assert matcher_behind(tokenizer, either, "ab").forced_bytes() == b""
    assert matcher_behind(tokenizer, either, "ab", END).forced_bytes() == b"ef"


def test_a_name_that_reads_like_a_rule_of_tokens_is_a_name(tokenizer: GrammarTokenizer) -> None:
    named = {"type": "json_schema", "json_schema": {"type": "object", "properties": {"Token(1)": {"const": "Token("}}}}
    matcher = matcher_behind(tokenizer, {"type": "or", "elements": [named, {"type": "any_text"}]})
    assert allowed(matcher, tokenizer.vocab_size).isdisjoint(tokenizer.special_tokens.values())
    assert not matcher.names_tokens


@pytest.mark.parametrize("rule", ["Token(2)", "ExcludeToken(5)", "TokenTagDispatch((5, root))", 'Token\n (1) "a" # "'])
def test_a_grammar_names_no_tokens_by_their_ids(rule: str, tokenizer: GrammarTokenizer) -> None:
    with pytest.raises(UnsupportedGrammar, match="ids of tokens"):
        matcher_behind(tokenizer, {"type": "grammar", "grammar": f"root ::= {rule}"})


def test_an_answer_does_not_end_where_only_a_special_token_goes_on(tokenizer: GrammarTokenizer) -> None:
    segmenter = Segmenter(tokenizer)
    assert segmenter.find(matcher_behind(tokenizer, sequence(text("ab"), token(END), text("cd"))), ()).ends is False
    more = {"type": "plus", "content": sequence(token(START), text("ab"))}
    assert segmenter.find(matcher_behind(tokenizer, more, START, "ab"), ids(tokenizer, START, "ab")).ends is False
    assert segmenter.find(matcher_behind(tokenizer, sequence(token(START), text("ab")), START), ids(tokenizer, START)).ends is True


def test_forced_text_between_special_tokens_is_found(tokenizer: GrammarTokenizer) -> None:
    matcher = matcher_behind(tokenizer, FORMAT, START, "answer", MIDDLE)
    segment = Segmenter(tokenizer).find(matcher, ids(tokenizer, START, "answer", MIDDLE))
    assert b"".join(tokenizer.vocabulary[one] for one in segment.tokens) == b'{"a": '


def test_a_long_text_beside_special_tokens_is_found_in_parts(tokenizer: GrammarTokenizer) -> None:
    """Each of its bytes takes a mask, to see whether a special token could come instead."""
    long = "abc " * 200
    matcher = matcher_behind(tokenizer, sequence(token(START), text(long), token(END)), START)
    forced = matcher.forced_bytes()
    assert 100 < len(forced) < len(long)
    segmenter, tokens = Segmenter(tokenizer), ids(tokenizer, START)
    while found := segmenter.find(matcher, tokens).tokens:
        assert all(map(matcher.accept, found))
        tokens += found
    written = b"".join(tokenizer.vocabulary[one] for one in tokens)
    assert long.encode().startswith(written)
    assert len(written) > 700


def test_a_payload_keeps_them(tokenizer: GrammarTokenizer) -> None:
    backend = select_backend(spec(FORMAT))
    payload = backend.compile(spec(FORMAT), tokenizer).data
    loaded = select_backend(spec(FORMAT)).load(payload, GrammarTokenizer.from_portable(tokenizer.portable()))
    tokens = ids(tokenizer, START, "answer", MIDDLE, '{"a": 1}')
    assert accepted_prefix(loaded.matcher(None, 64), tokens) == len(tokens)


@pytest.mark.parametrize(
    ("format_", "error", "pointer"),
    [
        (token("<|nobody|>"), InvalidGrammar, "/format/token"),
        (token("</s>"), InvalidGrammar, "/format/token"),
        (token(""), InvalidGrammar, "/format/token"),
        ({"type": "token", "token": 5}, InvalidGrammar, "/format/token"),
        (sequence(token(START), {"type": "any_text"}), UnsupportedGrammar, "/format/elements/1"),
        ({"type": "exclude_token", "token": START}, UnsupportedGrammar, "/format/type"),
        ({"type": "any_tokens", "exclude_tokens": [1]}, UnsupportedGrammar, "/format/exclude_tokens"),
        ({"type": "any_tokens", "excludes": ["a" * 201]}, GrammarTooLarge, "/format/excludes"),
        ({"type": "any_tokens", "excludes": [""]}, InvalidGrammar, "/format/excludes/0"),
        (sequence({"type": "mark", "text": "<none>"}, {"type": "any_text"}), UnsupportedGrammar, "/format/elements/1"),
        (sequence(arguments({"type": "string"}, marks=[START]), {"type": "any_text"}), UnsupportedGrammar, "/format/elements/1"),
        (arguments({"const": "a</b"}), UnsupportedGrammar, "/format/json_schema/properties/a"),
        (arguments({"type": "string", "maxLength": 65}, marks=[START]), UnsupportedGrammar, "/format/json_schema/properties/a"),
        (arguments({}, marks=["a" * 201]), GrammarTooLarge, "/format/marks"),
        (arguments({}, cdata="yes"), InvalidGrammar, "/format/cdata"),
    ],
)
def test_what_is_refused(format_: dict[str, Any], error: type[GrammarError], pointer: str, tokenizer: GrammarTokenizer) -> None:
    with pytest.raises(error) as caught:
        grammar_of(spec(format_), tokenizer)
    assert caught.value.pointer == pointer


def test_they_are_judged_without_a_vocabulary() -> None:
    assert tag_faults(spec(FORMAT).text, lambda *_: iter(())) == []
