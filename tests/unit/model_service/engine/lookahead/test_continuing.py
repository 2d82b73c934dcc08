"""Grammars take an answer so far in parts, so that no step waits for all of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from vllm.v1.request import RequestStatus

from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.core.backend import KeyedGrammar
from model_service.engine.core.lookahead.continuing import Continuing
from model_service.engine.verification import DRAFTS, SAID
from tests.driving import grammar_of, ids_of
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer

COMPILED = grammar_of(GrammarSpec(GrammarKind.REGEX, "(ab)*c"), GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE))
WAITING = RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR


def request(name: str, text: str, drafts: str = "") -> Any:
    prompt, said, drafted = ids_of("ask"), ids_of(text), ids_of(drafts)
    tokens = [*prompt, *said, *drafted]
    return SimpleNamespace(
        request_id=name,
        sampling_params=SimpleNamespace(extra_args={SAID: len(said), DRAFTS: len(drafted)}),
        use_structured_output=True,
        prompt_token_ids=tokens,
        num_prompt_tokens=len(tokens),
        structured_output_request=SimpleNamespace(grammar=KeyedGrammar(COMPILED.matcher(None, 0))),
    )


def steps_until_told(continuing: Continuing, asked: Any) -> tuple[int, bool]:
    for steps in range(1, 10_000):
        continuing.begin_step()
        told = continuing.unblocked(asked, WAITING)
        if told is not None:
            return steps, told
    raise AssertionError("never")


def test_a_long_answer_is_taken_over_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr(
        "model_service.engine.core.lookahead.continuing.time.perf_counter", lambda: float(next(clock))
    )  # each part takes a second
    continuing, long = Continuing(), request("long", "ab" * 200, drafts="ab")
    continuing.added(long)
    steps, allowed = steps_until_told(continuing, long)
    assert allowed
    assert steps > 3
    assert long.structured_output_request.grammar.matcher.accept(*ids_of("c"))


def test_all_answers_of_a_step_share_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr("model_service.engine.core.lookahead.continuing.time.perf_counter", lambda: float(next(clock)))
    continuing, asked = Continuing(), [request(str(number), "ab") for number in range(3)]
    for one in asked:
        continuing.added(one)
    continuing.begin_step()
    assert [continuing.unblocked(one, WAITING) for one in asked] == [True, None, None]
    continuing.begin_step()
    assert [continuing.unblocked(one, WAITING) for one in asked[1:]] == [True, None]


def test_what_the_grammar_forbids_is_told() -> None:
    continuing, wrong = Continuing(), request("wrong", "ab" * 50 + "b")
    continuing.added(wrong)
    assert steps_until_told(continuing, wrong) == (1, False)
