"""An engine jumps beside drafts that vLLM makes: forced text takes the place of those that were made ahead of it, and drafts go on behind
it. The models that draft here say what the embedded model says, so that a draft is refused where its maker has not seen what was forced."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from tests.integration.model_service.configurations.made_models import model_with_eagle
from tests.integration.model_service.conftest import NGRAMS
from tests.integration.model_service.jump_forward.test_prompt_lookup import asked, told
from tests.integration.model_service.running_engine import Answer, RunningEngine, running_engine

ACCEPTED = 0.9
"""Of the drafts of a model that says the same; an EAGLE sees one token less of the prompt."""


def changes(method: str, folder: Path) -> dict[str, Any]:
    """Of the tests' settings."""
    if method == "ngram":
        return {"engine_args": {"speculative_config": NGRAMS}}
    model, drafter = model_with_eagle(folder) if method == "eagle" else (EMBEDDED_WEIGHTS, EMBEDDED_WEIGHTS)
    drafts = {"method": method, "model": str(drafter), "num_speculative_tokens": 3}
    return {"model": str(model), "engine_args": {"speculative_config": drafts}}


def share_accepted(answers: list[Answer]) -> float:
    details: list[Mapping[str, int]] = [answer.usage["completion_tokens_details"] for answer in answers]
    accepted, rejected = (sum(detail.get(f"{kind}_prediction_tokens", 0) for detail in details) for kind in ("accepted", "rejected"))
    return accepted / (accepted + rejected)


@pytest.mark.parametrize("method", ["ngram", "draft_model", "eagle"])
def test_forced_text_takes_the_place_of_what_vllm_drafts(method: str, jumping: RunningEngine, tmp_path: Path) -> None:
    with running_engine(**changes(method, tmp_path)) as engine:
        answers = engine.ask_all(asked())
        assert told(answers) == told(jumping.ask_all(asked()))
        assert all(answer.forced > 0 for answer in answers)
        assert method == "ngram" or share_accepted(answers) > ACCEPTED
        drawn = engine.ask_all(asked(temperature=0.8, max_tokens=20))
        assert all(answer.forced > 0 for answer in drawn)
