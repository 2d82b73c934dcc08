"""Engines that jump on vLLM's second model runner. Its kernels are Triton's, and are interpreted here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from tests.integration.model_service.configurations.second_runner_engine import DRAFTED, FATES, STOCK, answers
from tests.integration.model_service.running_engine import RunningEngine
from tests.published.documents import ROOT

SEEDS = range(12)
JUMPS = ("sync", "async")
BESIDE = {"sync": [], "async": [STOCK]}
INTERPRETED = Path(__file__).parent / "interpreted"


def printed(module: str, *arguments: str, **environment: str) -> str:
    """By a module that is run with the interpreter, in the end."""
    path = os.pathsep.join([str(INTERPRETED), str(ROOT)])
    command = [sys.executable, "-m", f"tests.integration.model_service.configurations.{module}", *arguments]
    given = {**os.environ, "PYTHONPATH": path, "TRITON_INTERPRET": "1", **environment}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=given, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def side_by_side() -> Iterator[ThreadPoolExecutor]:
    """Two at a time: what is interpreted keeps one core busy."""
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.fixture(scope="module")
def engines(side_by_side: ThreadPoolExecutor) -> Mapping[str, Future[str]]:
    """What they print, by how they jump; beside stock vLLM where jumps are as on GPUs."""
    chosen = {"VLLM_USE_V2_MODEL_RUNNER": "1"}
    return {jumps: side_by_side.submit(printed, "second_runner_engine", jumps, *BESIDE[jumps], **chosen) for jumps in JUMPS}


def test_every_place_is_computed_with_its_final_token_whatever_becomes_of_requests(side_by_side: ThreadPoolExecutor) -> None:
    """Chunks, pauses, preemptions."""
    halves = [side_by_side.submit(printed, "second_runner_process", *map(str, half)) for half in (SEEDS[::2], SEEDS[1::2])]
    assert sum(int(half.result()) for half in halves) > 100


def test_it_takes_forced_tokens_behind_samples_that_are_void() -> None:
    """Where steps overlap, under our scheduler: nothing is left of the sample, nor of its count, that a segment stands in place of."""
    voided, penalized = json.loads(printed("second_overlapping_process"))
    assert voided > penalized > 0


def test_masks_from_frames_leave_the_logits_that_its_own_leave() -> None:
    """With drafts, and shared out among ranks."""
    assert int(printed("second_masks_process", *map(str, SEEDS[:4]))) > 100


@pytest.mark.parametrize("jumps", JUMPS)
def test_an_engine_answers_as_on_the_first_runner(jumping: RunningEngine, jumps: str, engines: Mapping[str, Future[str]]) -> None:
    on_the_first = answers(jumping)
    on_the_second = json.loads(engines[jumps].result())["answers"]
    assert [tuple(answer) for answer in on_the_second] == on_the_first
    assert [forced > 0 for _, forced in on_the_first] == [True, True, True, False]


def test_forced_text_takes_the_place_of_what_vllm_drafts(jumping: RunningEngine, side_by_side: ThreadPoolExecutor) -> None:
    """With n-grams, a model and an EAGLE."""
    runs = [side_by_side.submit(printed, "second_runner_engine", "auto", method, VLLM_USE_V2_MODEL_RUNNER="1") for method in DRAFTED]
    on_the_first = answers(jumping)
    for run in runs:
        found = json.loads(run.result())
        assert [tokens for tokens, _ in found] == [tokens for tokens, _ in on_the_first]
        assert [forced > 0 for _, forced in found] == [True, True, True, False]


def test_drawn_tokens_and_log_probabilities_are_those_of_stock_vllm(engines: Mapping[str, Future[str]]) -> None:
    """On the same runner, though ours jumps."""
    *drawn, greedy = json.loads(engines["async"].result())[STOCK]
    for answer in (*drawn, greedy):
        assert answer["ours"] == answer["stock"]
        assert (answer["forced"] > 0) == (answer is not greedy)
    assert len({tuple(answer["ours"]) for answer in drawn}) > 1
    ours, stock = greedy["logprobs"]
    assert ours == pytest.approx(stock, abs=1e-3)
    assert len(ours) == len(greedy["ours"])


def test_it_does_with_masks_from_frames_and_whatever_becomes_of_the_broadcaster(jumping: RunningEngine) -> None:
    on_the_first = answers(jumping)
    fates = json.loads(printed("second_runner_engine", "auto", f"maskcast-second-test-{uuid4().hex}", VLLM_USE_V2_MODEL_RUNNER="1"))
    assert [[tuple(answer) for answer in found] for found, _ in fates] == [on_the_first] * len(FATES)
    mapped = dict(zip(FATES, (count for _, count in fates), strict=True))
    assert mapped.pop("there") > 1
    assert set(mapped.values()) == {0}
