"""A constraint of an answer in Kimi K3's channel `response`, on every backend."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from grammar_service.backends import Matcher, backend_named, select_backend
from grammar_service.backends.batch_fill import BatchFiller
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.errors import InvalidGrammar
from grammar_service.limits import Limits
from grammar_service.resolve import resolve
from grammar_service.segments import Segmenter
from grammar_service.segments.closing import ClosingSearch
from grammar_service.spec import KIMI_K3, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, grammar_of
from tests.tokenizers.tiny_tokenizer import OTHER_STOP_ID, STOP_ID, marked_tokenizer, tiny_tokenizer

OPEN, CLOSE, SEPARATOR = MARKS = "<|open|>", "<|close|>", "<|sep|>"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
SPECS = {
    "kimi-xgrammar": (GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA), channels=KIMI_K3), '{"a": 1}'),
    "kimi-llguidance": (GrammarSpec(GrammarKind.LARK, 'start: "a" /[0-9]+/', channels=KIMI_K3), "a12"),
    "kimi-automata": (GrammarSpec(GrammarKind.REGEX, "[a-c]{1,3}", channels=KIMI_K3), "abc"),
}
HEAD, TAIL, END = (OPEN, "response", SEPARATOR), (CLOSE, "response", SEPARATOR), (CLOSE, "message", SEPARATOR)
STOPS = {STOP_ID, OTHER_STOP_ID}


@pytest.fixture(scope="module")
def vocabulary() -> GrammarTokenizer:
    return GrammarTokenizer.from_huggingface(marked_tokenizer(MARKS, special=True))


def ids(vocabulary: GrammarTokenizer, *parts: str) -> list[int]:
    """Of texts and of marks."""
    marks = vocabulary.special_tokens
    return [token for part in parts for token in ([marks[part]] if part in MARKS else vocabulary.encode(part))]


def matcher_of(spec: GrammarSpec, vocabulary: GrammarTokenizer) -> Matcher:
    return grammar_of(spec, vocabulary).matcher([*STOPS], 64)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("head", [(), HEAD])
@pytest.mark.parametrize("end", [(), END])
def test_the_answer_keeps_to_its_constraint_in_its_channel(
    name: str, head: tuple[str, ...], end: tuple[str, ...], vocabulary: GrammarTokenizer
) -> None:
    spec, text = SPECS[name]
    assert select_backend(spec).name == name
    matcher = matcher_of(spec, vocabulary)
    for token in ids(vocabulary, *head, text, *TAIL, *end):
        options = allowed(matcher, vocabulary.vocab_size)
        assert matcher.accept(token)
        assert token in options
        assert not matcher.is_terminated()
    assert allowed(matcher, vocabulary.vocab_size) - ids_of_end(vocabulary, end) == STOPS
    assert matcher.accept(STOP_ID)
    assert matcher.is_terminated()
    assert not allowed(matcher, vocabulary.vocab_size)
    assert not matcher.accept(STOP_ID)


def ids_of_end(vocabulary: GrammarTokenizer, end: tuple[str, ...]) -> set[int]:
    return set() if end else {vocabulary.special_tokens[CLOSE]}


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("wrong", [("z",), (CLOSE,), (OPEN, "tools"), (*HEAD, OPEN), (*HEAD, SEPARATOR), HEAD + TAIL, (*HEAD, "{}")])
def test_nothing_else_stands_there(name: str, wrong: tuple[str, ...], vocabulary: GrammarTokenizer) -> None:
    tokens = ids(vocabulary, *wrong)
    assert accepted_prefix(matcher_of(SPECS[name][0], vocabulary), tokens) < len(tokens)


@pytest.mark.parametrize("name", SPECS)
def test_the_answer_ends_with_its_channel_alone(name: str, vocabulary: GrammarTokenizer) -> None:
    spec, text = SPECS[name]
    for tokens in (ids(vocabulary, text), ids(vocabulary, *HEAD, text), ids(vocabulary, text, CLOSE)):
        matcher = matcher_of(spec, vocabulary)
        assert all(map(matcher.accept, tokens))
        assert not STOPS & allowed(matcher, vocabulary.vocab_size)
        assert not any(map(matcher.accept, STOPS))


@pytest.mark.parametrize("name", SPECS)
def test_all_of_it_is_taken_back_token_by_token(name: str, vocabulary: GrammarTokenizer) -> None:
    spec, text = SPECS[name]
    matcher, masks = matcher_of(spec, vocabulary), list[set[int]]()
    tokens = [*ids(vocabulary, *HEAD, text, *TAIL, *END), STOP_ID]
    for token in tokens:
        masks.append(allowed(matcher, vocabulary.vocab_size))
        assert matcher.accept(token)
    for back in range(1, len(tokens) + 1):
        matcher.rollback(back)
        at = len(tokens) - back
        assert allowed(matcher, vocabulary.vocab_size) == masks[at]
        assert all(map(matcher.accept, tokens[at:]))
    with pytest.raises(ValueError, match="take back"):
        matcher.rollback(len(tokens) + 1)
    matcher.reset()
    assert allowed(matcher, vocabulary.vocab_size) == masks[0]


def test_many_are_filled_at_once_wherever_they_are(vocabulary: GrammarTokenizer) -> None:
    matchers = list[Matcher]()
    for spec, text in SPECS.values():
        whole = ids(vocabulary, *HEAD, text, *TAIL)
        for length in range(len(whole) + 1):
            matchers.append(matcher_of(spec, vocabulary))
            assert all(map(matchers[-1].accept, whole[:length]))
    masks = torch.full((len(matchers), (vocabulary.vocab_size + 31) // 32), -1, dtype=torch.int32)
    BatchFiller(vocabulary, 1).fill(matchers, masks, range(len(matchers)))
    for matcher, row in zip(matchers, masks, strict=True):
        alone = torch.zeros(1, len(row), dtype=torch.int32)
        matcher.fill(alone, 0)
        assert torch.equal(row, alone[0])


def test_names_of_channels_are_forced_and_so_is_what_the_constraint_forces(vocabulary: GrammarTokenizer) -> None:
    segmenter, (spec, text) = Segmenter(vocabulary), SPECS["kimi-xgrammar"]
    for before, forced in (((), ""), ((OPEN,), "response"), (HEAD, '{"a": '), ((*HEAD, text), ""), ((text, CLOSE), "response")):
        matcher, tokens = matcher_of(spec, vocabulary), ids(vocabulary, *before)
        assert all(map(matcher.accept, tokens))
        segment = segmenter.find(matcher, tokens)
        assert (list(segment.tokens), segment.ends) == (vocabulary.encode(forced), False)


@pytest.mark.parametrize("before", [(), (OPEN,), HEAD, (*HEAD, '{"a": 1'), (*HEAD, '{"a": 1}', CLOSE)])
def test_an_answer_has_a_short_end(before: tuple[str, ...], vocabulary: GrammarTokenizer) -> None:
    matcher = matcher_of(SPECS["kimi-xgrammar"][0], vocabulary)
    assert all(map(matcher.accept, ids(vocabulary, *before)))
    end = ClosingSearch(vocabulary).find(matcher, 64)
    assert end is not None
    assert all(map(matcher.accept, [*end, STOP_ID]))


def test_its_key_and_its_stopgap_are_its_own() -> None:
    spec, _ = SPECS["kimi-xgrammar"]
    framed = resolve(spec, Limits(), "vocabulary")
    assert framed.key != resolve(GrammarSpec(spec.kind, spec.text), Limits(), "vocabulary").key
    assert (framed.backend, framed.request().on_stopgap() is not None) == ("kimi-xgrammar", True)


def test_a_model_without_these_marks_is_told_so() -> None:
    other, backend = GrammarTokenizer.from_huggingface(tiny_tokenizer()), backend_named("kimi-automata")
    payload = backend.compile(SPECS["kimi-automata"][0], other).data
    with pytest.raises(InvalidGrammar, match="no special token"):
        backend.load(payload, other)
