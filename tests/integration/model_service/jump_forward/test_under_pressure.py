"""Nothing forced is lost where requests are preempted, cut by the token budget, left out of a step, or aborted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from grammar_service.spec import GrammarKind, GrammarSpec
from tests.integration.model_service.running_engine import RunningEngine, running_engine

BUDGET = 64
BLOCK = 32
CONTEXT = 512
WORDS = "The record that follows has been written by nobody, and every word of it was known before it was asked for, " * 2
SPEC = GrammarSpec(GrammarKind.REGEX, f"{WORDS}(one|two) {WORDS}(three|four) {WORDS}[0-9]{{3}}")


@pytest.fixture(scope="module", params=["sync", "async"])
def tight(request: pytest.FixtureRequest) -> Iterator[RunningEngine]:
    """A step computes fewer tokens than a segment has, and the cache holds few requests."""
    arguments = {"max_num_batched_tokens": BUDGET, "enable_chunked_prefill": True, "num_gpu_blocks_override": 20, "block_size": BLOCK}
    with running_engine(jump_forward=request.param, engine_args=arguments, max_num_seqs=8, max_model_len=CONTEXT) as engine:
        yield engine


def test_segments_over_the_token_budget_arrive_whole_though_requests_are_preempted(tight: RunningEngine, jumping: RunningEngine) -> None:
    # Other prompts each, or they would share their blocks.
    asked: list[Any] = [(f"Question {number}: answer.", SPEC, {"max_tokens": 400}) for number in range(16)]
    preempted, expected = tight.engine.core.preemptions, jumping.ask_all(asked)
    assert {answer.finish_reason for answer in expected} == {"stop"}
    answers = tight.ask_all(asked)
    assert tight.engine.core.preemptions > preempted
    assert [answer.text for answer in answers] == [answer.text for answer in expected]
    assert [answer.tokens for answer in answers] == [answer.tokens for answer in expected]
    assert [answer.forced for answer in answers] == [answer.forced for answer in expected]


def test_the_context_may_end_inside_a_segment(tight: RunningEngine) -> None:
    prompt_tokens = tight.ask("Answer. " * 60, SPEC, max_tokens=1).usage["prompt_tokens"]
    room = CONTEXT - prompt_tokens
    answer = tight.ask("Answer. " * 60, SPEC, max_tokens=room)
    assert answer.finish_reason == "length"
    assert answer.text.startswith(WORDS) or WORDS.startswith(answer.text)
    assert len(answer.tokens) == answer.usage["completion_tokens"] == room


def test_a_seeded_request_is_computed_in_parts(tight: RunningEngine) -> None:
    first, second = (tight.ask("Say something. " * 20, None, temperature=1.0, seed=3, max_tokens=20) for _ in range(2))
    assert first.tokens == second.tokens


def test_seeded_sampling_survives_chunks_and_preemption(tight: RunningEngine) -> None:
    fields, preempted = {"max_tokens": 400, "temperature": 1.0, "seed": 5}, tight.engine.core.preemptions
    answers = tight.ask_all([(f"Question {number}: answer.", SPEC, fields) for number in range(8)])
    assert tight.engine.core.preemptions > preempted
    assert all(answer.finish_reason == "stop" for answer in answers)
    assert all(answer.text.count(WORDS) == 3 for answer in answers)


def test_an_abandoned_request_leaves_nothing_behind(tight: RunningEngine) -> None:
    tight.abandon("Answer.", SPEC, after=1)
    assert json.dumps(tight.ask("Answer.", GrammarSpec(GrammarKind.CHOICE, '["yes", "no"]')).text) in ('"yes"', '"no"')
    assert tight.engine.running == 0
    assert tight.engine.outstanding_prefill_tokens == 0
