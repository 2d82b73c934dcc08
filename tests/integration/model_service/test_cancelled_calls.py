"""Calls whose clients have left while the engine computed them."""

from __future__ import annotations

from typing import Any

import pytest

from model_service.messages import Endpoint
from tests.integration.model_service.running_engine import RunningEngine

LONG = {"max_tokens": 1500, "ignore_eos": True}


@pytest.mark.parametrize(
    ("endpoint", "asked"),
    [(Endpoint.CHAT, {"messages": [{"role": "user", "content": "Tell."}]}), (Endpoint.COMPLETION, {"prompt": "Tell."})],
)
def test_a_whole_answer_that_is_cancelled_is_no_answer(jumping: RunningEngine, endpoint: Endpoint, asked: dict[str, Any]) -> None:
    """An answer, as vLLM makes one, would tell its ingress that the request cost nothing."""
    assert jumping.cancel({**asked, **LONG}, endpoint)
