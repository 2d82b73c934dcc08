"""A constraint of an answer in Harmony's channel `final`, on every backend: first the marks and any reasoning, then the answer."""

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
from grammar_service.spec import HARMONY, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, grammar_of
from tests.tokenizers.harmony_folder import MARKS, harmony_vocabulary
from tests.tokenizers.tiny_tokenizer import tiny_tokenizer

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
SPECS = {
    "harmony-xgrammar": (GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA), channels=HARMONY), '{"a": 1}'),
    "harmony-llguidance": (GrammarSpec(GrammarKind.LARK, 'start: "a" /[0-9]+/', channels=HARMONY), "a12"),
    "harmony-automata": (GrammarSpec(GrammarKind.REGEX, "[a-c]{3}", channels=HARMONY), "abc"),
}
REASONED = ("<|channel|>", "analysis", "<|message|>", "hm {", "<|end|>", "<|start|>", "assistant")
FINAL = ("<|channel|>", "final", "<|message|>")


RETURN, CALL = map(MARKS.index, ("<|return|>", "<|call|>"))


@pytest.fixture(scope="module")
def vocabulary() -> GrammarTokenizer:
    return harmony_vocabulary()


def ids(vocabulary: GrammarTokenizer, *parts: str) -> list[int]:
    """Of texts and of marks."""
    marks = vocabulary.special_tokens
    return [token for part in parts for token in ([marks[part]] if part in marks else vocabulary.encode(part))]


@pytest.mark.parametrize("name", SPECS)
def test_the_answer_keeps_to_its_constraint_behind_any_reasoning(name: str, vocabulary: GrammarTokenizer) -> None:
    spec, text = SPECS[name]
    assert select_backend(spec).name == name
    for head in (FINAL, REASONED + FINAL, REASONED * 2 + FINAL):
        matcher = matcher_of(spec, vocabulary)
        tokens = ids(vocabulary, *head, text)
        assert accepted_prefix(matcher, tokens) == len(tokens)
        assert all(map(matcher.accept, tokens))
        assert CALL in allowed(matcher, vocabulary.vocab_size)
        assert matcher.accept(RETURN)
        assert matcher.is_terminated()


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("head", [(), REASONED, ("<|channel|>", "analysis", "<|message|>"), ("<|channel|>", "commentary"), ("a",)])
def test_nothing_else_comes_ahead_of_it(name: str, head: tuple[str, ...], vocabulary: GrammarTokenizer) -> None:
    spec, text = SPECS[name]
    matcher = matcher_of(spec, vocabulary)
    tokens = ids(vocabulary, *head, text)
    assert accepted_prefix(matcher, [*tokens, RETURN]) < len(tokens) + 1


@pytest.mark.parametrize("name", SPECS)
def test_all_of_it_is_taken_back_token_by_token(name: str, vocabulary: GrammarTokenizer) -> None:
    spec, text = SPECS[name]
    matcher, masks = matcher_of(spec, vocabulary), list[set[int]]()
    tokens = [*ids(vocabulary, *REASONED, *FINAL, text), RETURN]
    for token in tokens:
        masks.append(allowed(matcher, vocabulary.vocab_size))
        assert matcher.accept(token)
    for back in (1, 2, len(text), len(text) + 2):
        matcher.rollback(back)
        at = len(tokens) - back
        assert allowed(matcher, vocabulary.vocab_size) == masks[at]
        assert all(map(matcher.accept, tokens[at:]))
    matcher.reset()
    assert allowed(matcher, vocabulary.vocab_size) == masks[0]


def test_many_are_filled_at_once_wherever_they_are(vocabulary: GrammarTokenizer) -> None:
    matchers = [matcher_of(spec, vocabulary) for spec, _ in SPECS.values() for _ in range(2)]
    for matcher in matchers[::2]:
        assert all(map(matcher.accept, ids(vocabulary, *FINAL)))
    masks = torch.zeros(len(matchers), (vocabulary.vocab_size + 31) // 32, dtype=torch.int32)
    BatchFiller(vocabulary, 1).fill(matchers, masks, range(len(matchers)))
    for matcher, row in zip(matchers, masks, strict=True):
        alone = torch.zeros(1, len(row), dtype=torch.int32)
        matcher.fill(alone, 0)
        assert torch.equal(row, alone[0])


def test_what_is_forced_is_found_on_either_side(vocabulary: GrammarTokenizer) -> None:
    segmenter, matcher = Segmenter(vocabulary), matcher_of(SPECS["harmony-xgrammar"][0], vocabulary)
    head = ids(vocabulary, *REASONED[:-1])
    assert all(map(matcher.accept, head))
    segment = segmenter.find(matcher, head)
    assert (list(segment.tokens), segment.ends) == (vocabulary.encode("assistant"), False)
    rest = ids(vocabulary, "assistant", *FINAL)
    assert all(map(matcher.accept, rest))
    assert list(segmenter.find(matcher, [*head, *rest]).tokens) == vocabulary.encode('{"a": ')


def test_reasoning_has_a_short_end_that_leads_to_the_answer(vocabulary: GrammarTokenizer) -> None:
    matcher = matcher_of(SPECS["harmony-xgrammar"][0], vocabulary)
    assert all(map(matcher.accept, ids(vocabulary, "<|channel|>", "analysis", "<|message|>", "hm")))
    end = ClosingSearch(vocabulary).find(matcher, 64)
    assert end is not None
    last = ids(vocabulary, *FINAL, '{"a": 0}')
    assert list(end[-len(last) :]) == last


def test_its_key_and_its_stopgap_are_its_own() -> None:
    spec, _ = SPECS["harmony-xgrammar"]
    plain = GrammarSpec(spec.kind, spec.text)
    framed = resolve(spec, Limits(), "vocabulary")
    assert framed.key != resolve(plain, Limits(), "vocabulary").key
    assert (framed.backend, framed.request().on_stopgap() is not None) == ("harmony-xgrammar", True)


def test_a_model_without_these_marks_is_told_so() -> None:
    other = GrammarTokenizer.from_huggingface(tiny_tokenizer())
    backend = backend_named("harmony-automata")
    payload = backend.compile(SPECS["harmony-automata"][0], other).data
    with pytest.raises(InvalidGrammar, match="no special token"):
        backend.load(payload, other)


def matcher_of(spec: GrammarSpec, vocabulary: GrammarTokenizer) -> Matcher:
    return grammar_of(spec, vocabulary).matcher([RETURN, CALL], 64)
