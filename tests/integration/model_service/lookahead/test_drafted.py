"""Answers that look ahead with a second, other model are those of the paper's algorithms as plain loops over torch."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.commands.lookahead.cases import Case, outcome_of, tried
from deployments.commands.lookahead.grid import Outcome, Thresholds, chosen
from grammar_service.spec import GrammarSpec
from model_service.errors import EngineDead, EngineSettingsError
from model_service.settings import DraftSettings
from tests.integration.model_service.lookahead.expected import LIMIT, QUESTIONS, SPECS, allows, reference, same
from tests.integration.model_service.lookahead.torch_model import TorchModel
from tests.integration.model_service.running_engine import SETTINGS, RunningEngine, running_engine
from tests.unit.model_service.lookahead.reference import Reference
from tests.waiting import until

APPX: dict[str, Any] = {"method": "cdlh_appx", "d": 4, "reward": {"type": "concepts", "words": ["city", "number", "age"]}}
CDSL: dict[str, Any] = {**APPX, "method": "cdsl", "a_t": 0.6, "r_t": 0.3, "b": 0}
Decoded = Callable[[Reference], tuple[int, ...]]


def cdsl(asked: dict[str, Any]) -> Decoded:
    def decoded(expected: Reference) -> tuple[int, ...]:
        chance = Random(0) if asked.get("rejection") == "sampling" else None  # the seed of requests that say nothing of it
        return expected.cdsl(asked["a_t"], asked["r_t"], asked["b"], asked.get("keep_drafts", False), chance)

    return decoded


METHODS: dict[str, tuple[dict[str, Any], Decoded]] = {
    "appx": (APPX, Reference.cdlh_appx),
    **{
        name: (asked, cdsl(asked))
        for name, asked in {
            "cdsl": CDSL,
            "cdsl that keeps drafts": {**CDSL, "keep_drafts": True, "r_t": 0.9},
            "cdsl that draws": {**CDSL, "rejection": "sampling"},
            "cdsl that draws, keeps drafts and leads": {**CDSL, "rejection": "sampling", "keep_drafts": True, "r_t": 0.9, "b": 1},
            "cdsl that leads": {**CDSL, "b": 2, "r_t": 0.6, "reward": {"type": "length", "least": 3, "most": 4}},
        }.items()
    },
}


@pytest.mark.parametrize("method", METHODS)
def test_answers_are_those_of_the_plain_loops(
    drafted: RunningEngine, torch_model: TorchModel, torch_draft: TorchModel, method: str
) -> None:
    asked, decoded = METHODS[method]
    answers = drafted.ask_all([(question, None, {"max_tokens": LIMIT, "lookahead": asked}) for question in QUESTIONS])
    equal = 0
    for answer in answers:
        expected = reference([torch_model, torch_draft], asked, answer.prompt)
        equal += same(answer, expected, decoded)
        told = answer.usage["completion_tokens_details"]["lookahead"]
        assert 0 < told["draft_calls"] <= expected.draft_calls
        assert told["target_calls"] <= expected.target_calls
        assert sum(told["states"].values()) == (0 if asked["method"] == "cdlh_appx" else told["target_calls"]) or asked.get("b")
    assert equal >= len(QUESTIONS) - 1


def test_a_trace_tells_what_became_of_drafts(drafted: RunningEngine) -> None:
    answer = drafted.ask(QUESTIONS[0], max_tokens=LIMIT, lookahead={**CDSL, "trace": True})
    steps, told = answer.choice["lookahead_steps"], answer.usage["completion_tokens_details"]["lookahead"]
    assert "".join(step["text"] for step in steps) == answer.text
    assert Counter(step["state"] for step in steps) == Counter(told["states"])
    assert [sum(step[name] for step in steps) for name in ("proposed", "accepted")] == [told["proposed"], told["accepted"]]


def test_drafts_are_accepted_and_refused(drafted: RunningEngine) -> None:
    told = [
        drafted.ask(question, max_tokens=LIMIT, lookahead=CDSL).usage["completion_tokens_details"]["lookahead"] for question in QUESTIONS
    ]
    proposed, accepted = (sum(one[name] for one in told) for name in ("proposed", "accepted"))
    assert 0 < accepted < proposed


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("method", METHODS)
def test_with_a_grammar_both_models_keep_to_it(
    drafted: RunningEngine, torch_model: TorchModel, torch_draft: TorchModel, method: str, spec: GrammarSpec
) -> None:
    asked, decoded = METHODS[method]
    answers = drafted.ask_all([(question, spec, {"max_tokens": LIMIT, "lookahead": asked}) for question in QUESTIONS[:4]])
    assert sum(same(answer, reference([torch_model, torch_draft], asked, answer.prompt, spec), decoded) for answer in answers) >= 3
    assert all(allows(spec, answer.tokens) for answer in answers)


def test_thresholds_are_tried_and_the_best_of_the_fastest_is_taken(drafted: RunningEngine) -> None:
    cases = [Case(question, CDSL["reward"]) for question in QUESTIONS[:4]]

    def ask(case: Case, thresholds: dict[str, Any]) -> Outcome:
        asked = {"method": "cdsl", "d": 4, "reward": case.reward, **thresholds}
        return outcome_of(drafted.ask(str(case.prompt), max_tokens=LIMIT, lookahead=asked).usage)

    loose, strict = Thresholds(0.3, 0.0, 0), Thresholds(0.9, 0.9, 0)
    found = tried(ask, cases, [loose, strict], 1.0, 0.2, 4, lambda *_: None)
    assert [one.thresholds for one in found] == [loose, strict]
    # Drafts that need not earn anything are kept more often than those that must earn nearly all.
    assert found[0].draft_calls < found[1].draft_calls
    assert all(0 < one.target_calls < one.p for one in found)
    assert chosen(found) in found


def test_rejection_by_sampling_repeats_by_its_seed(drafted: RunningEngine) -> None:
    drawn: dict[str, Any] = {"max_tokens": LIMIT, "lookahead": {**CDSL, "rejection": "sampling"}}
    first = [drafted.ask(question, **drawn).tokens for question in QUESTIONS[:3]]
    assert first == [drafted.ask(question, **drawn).tokens for question in QUESTIONS[:3]]


def test_a_client_that_leaves_leaves_nothing_in_either_engine(drafted: RunningEngine) -> None:
    drafted.abandon(QUESTIONS[0], None, 3, CDSL)
    engine: Any = drafted.engine
    until(lambda: len(engine._engine.children) == len(engine._drafts.children) == engine.running == 0)


def drafting(folder: Path) -> Any:
    from model_service.engine.drafting import start_draft

    settings = replace(SETTINGS, lookahead=True)
    return start_draft(settings.drafting(DraftSettings(str(folder))), settings, "none")


def test_a_draft_of_other_tokens_is_refused(drafted: RunningEngine, model_folder: Path) -> None:
    with pytest.raises(EngineSettingsError, match="has other tokens than the model"):
        asyncio.run(drafting(model_folder))


def test_a_draft_whose_heads_have_no_kernel_is_refused_in_a_sentence(drafted: RunningEngine, tmp_path: Path) -> None:
    shutil.copytree(EMBEDDED_WEIGHTS, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "head_dim": 24}))
    with pytest.raises(EngineSettingsError, match="has heads of 24 numbers"):
        asyncio.run(drafting(tmp_path))


def test_a_draft_that_dies_takes_the_engine_along_and_nobody_waits_for_it(draft_folder: Path) -> None:
    with running_engine(lookahead=True, draft=DraftSettings(str(draft_folder))) as engine, ThreadPoolExecutor() as threads:
        plain = threads.submit(engine.ask, QUESTIONS[0], max_tokens=1500, ignore_eos=True)
        ahead = threads.submit(engine.ask, QUESTIONS[1], max_tokens=1500, lookahead={**CDSL, "reward": {"type": "length", "least": 900}})
        until(lambda: engine.engine.running == 2)
        drafts: Any = engine.engine._drafts
        (process,) = drafts.engine_core.resources.engine_manager.processes
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(EngineDead):
            ahead.result(60)
        with pytest.raises(EngineDead):
            engine._run(engine.engine.check_health())
        with pytest.raises(EngineDead):
            plain.result(60)
