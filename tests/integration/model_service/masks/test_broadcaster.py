"""With masks from the broadcaster, and whatever happens to it, an engine answers as one that fills them itself."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.integration.model_service.masks.mask_requests import await_masks, requests
from tests.integration.model_service.masks.message_relay import MessageRelay
from tests.integration.model_service.running_broadcaster import RunningBroadcaster, running_broadcaster
from tests.integration.model_service.running_engine import Answer, RunningEngine, running_engine
from tests.waiting import until

NAME = f"maskcast-masks-test-{uuid4().hex}"
ASKS = requests()
MANY_ROWS = 100
"""Of more than 1,000 that all answers have: on a busy machine the engine fills those that come late itself."""
Outcomes = list[tuple[str, tuple[int, ...], str]]


def _outcomes(answers: list[Answer]) -> Outcomes:
    return [(answer.text, answer.tokens, answer.finish_reason) for answer in answers]


def _forced(answers: list[Answer]) -> int:
    """Of those with a constraint."""
    return sum(answer.forced for answer in answers if "completion_tokens_details" in answer.usage)


@pytest.fixture(scope="module")
def expected(stepping: RunningEngine) -> Outcomes:
    return _outcomes(stepping.ask_all(ASKS))


@pytest.fixture(scope="module")
def engine() -> Iterator[RunningEngine]:
    with running_engine(jump_forward=False, mask_socket=NAME) as running:
        yield running


@pytest.fixture
def broadcaster(engine: RunningEngine) -> Iterator[RunningBroadcaster]:
    with running_broadcaster(NAME) as running:
        await_masks(engine)
        yield running


def _await_end(broadcaster: RunningBroadcaster) -> None:
    """The engine says so in a step of its own."""
    until(lambda: not broadcaster.totals()["requests"])


def test_answers_are_the_same(engine: RunningEngine, broadcaster: RunningBroadcaster, expected: Outcomes) -> None:
    before, shipped = broadcaster.totals(), engine.mask_counts()[0]
    assert _outcomes(engine.ask_all(ASKS)) == expected
    after = broadcaster.totals()
    assert after["rows"] - before["rows"] > MANY_ROWS
    assert after["refused"] == 0
    assert (engine.mask_counts()[0] - shipped)["mapped"] > 0


def test_canonical_ones_are(engine: RunningEngine, broadcaster: RunningBroadcaster, stepping: RunningEngine) -> None:
    """Also where drawn tokens are refused, of which the broadcaster knows nothing."""
    bias = {str(GrammarTokenizer.load(EMBEDDED_WEIGHTS).encode(text)[0]): 100 for text in ("a", " ")}
    asks = [(question, replace(spec, canonical=True), fields) for question, spec, fields in ASKS if spec is not None]
    refused = GrammarSpec(GrammarKind.REGEX, "a( the|[b-z]{1,6})\\.", canonical=True)
    asks += [("Say.", refused, {"logit_bias": bias, "temperature": temperature, "seed": 2}) for temperature in (0, 1)]
    redraws, before = engine.engine.core.redraws, broadcaster.totals()["rows"]
    # All make tables of the tokenizer first, in seconds, and side by side.
    with ThreadPoolExecutor() as threads:
        first = threads.submit(engine.ask_all, asks)
        wanted = _outcomes(stepping.ask_all(asks))
    assert _outcomes(first.result()) == wanted
    while broadcaster.totals()["rows"] - before <= MANY_ROWS:
        assert _outcomes(engine.ask_all(asks)) == wanted
    assert broadcaster.totals()["refused"] == 0
    assert engine.engine.core.redraws > redraws


def test_they_are_with_jumps(jumping: RunningEngine) -> None:
    name = f"{NAME}-jumping"
    with running_broadcaster(name) as broadcaster, running_engine(mask_socket=name) as engine:
        await_masks(engine)
        answers = engine.ask_all(ASKS)
        assert _outcomes(answers) == _outcomes(jumping.ask_all(ASKS))
        assert _forced(answers) > 0
        assert broadcaster.totals()["rows"] > MANY_ROWS


def test_they_are_with_jumps_and_two_workers(jumping: RunningEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{NAME}-two"
    # Of the engines that run already, with one worker each.
    monkeypatch.delenv("VLLM_CPU_OMP_THREADS_BIND", raising=False)
    with running_broadcaster(name), running_engine(mask_socket=name, tensor_parallel_size=2) as engine:
        await_masks(engine)
        answers = engine.ask_all(ASKS)
        assert _outcomes(answers) == _outcomes(jumping.ask_all(ASKS))
        assert _forced(answers) > 0
        first, second = engine.mask_counts()
        assert first == second
        assert first["mapped"] > 0


def test_they_are_with_drafts_and_jumps(drafting: tuple[RunningEngine, RunningBroadcaster], jumping: RunningEngine) -> None:
    engine, broadcaster = drafting
    before = broadcaster.totals()["rows"]
    assert _outcomes(engine.ask_all(ASKS)) == _outcomes(jumping.ask_all(ASKS))
    assert broadcaster.totals()["rows"] - before > MANY_ROWS


def test_they_are_when_the_broadcaster_is_killed(engine: RunningEngine, broadcaster: RunningBroadcaster, expected: Outcomes) -> None:
    def kill(finished: int) -> None:
        if finished == 4:
            broadcaster.kill()

    assert _outcomes(engine.ask_all(ASKS, kill)) == expected
    # And without one from the start; the next one is found.
    assert _outcomes(engine.ask_all(ASKS)) == expected
    with running_broadcaster(NAME) as another:
        await_masks(engine)
        assert _outcomes(engine.ask_all(ASKS)) == expected
        assert another.totals()["rows"] > MANY_ROWS


def test_they_are_when_it_stands_still(engine: RunningEngine, broadcaster: RunningBroadcaster, expected: Outcomes) -> None:
    def stop(finished: int) -> None:
        if finished == 4:
            broadcaster.stop()
        if finished == 24:
            broadcaster.resume()

    assert _outcomes(engine.ask_all(ASKS, stop)) == expected
    await_masks(engine)
    before = broadcaster.totals()["rows"]
    assert _outcomes(engine.ask_all(ASKS)) == expected
    assert broadcaster.totals()["rows"] - before > MANY_ROWS


def test_they_are_when_a_message_is_lost(engine: RunningEngine, expected: Outcomes) -> None:
    behind = f"{NAME}-behind"
    with running_broadcaster(behind) as broadcaster:
        relay = MessageRelay(NAME, behind)
        try:
            # On a busy machine the engine may disconnect from a late broadcaster before the broadcaster sees that a message is missing.
            while not broadcaster.totals()["refused"]:
                relay.lost.clear()
                await_masks(engine)
                assert _outcomes(engine.ask_all(ASKS, lambda finished: relay.lose_one() if finished == 4 else None)) == expected
                assert relay.lost.is_set()
            assert broadcaster.totals()["refused"] == 1
        finally:
            relay.close()


def test_abandoned_requests_are_forgotten(engine: RunningEngine, broadcaster: RunningBroadcaster) -> None:
    before = broadcaster.totals()["rows"]
    for question, spec, _ in ASKS[:7]:
        if spec is not None:
            engine.abandon(question, spec, after=1)
    _await_end(broadcaster)
    assert broadcaster.totals()["rows"] > before
    assert engine.engine.running == 0


def test_answered_requests_are_forgotten(engine: RunningEngine, broadcaster: RunningBroadcaster) -> None:
    engine.ask_all(ASKS)
    _await_end(broadcaster)
    assert broadcaster.totals()["engines"] == 1
