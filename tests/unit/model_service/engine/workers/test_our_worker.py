"""What a worker does around vLLM's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from model_service.engine.core_options import BroadcasterOptions, CoreOptions, carry
from model_service.engine.workers.our_worker import OurWorker


class Recording:
    """In vLLM's place."""

    def __init__(self, config: Any) -> None:
        self.vllm_config = config
        self.done: list[str] = []

    def compile_or_warm_up_model(self) -> float:
        self.done.append("vLLM warms up")
        return 1.5


class Worker(OurWorker, Recording):
    def _try_logits(self) -> None:
        self.done.append("logits are tried")


def config(broadcaster: BroadcasterOptions | None) -> Any:
    scheduling = SimpleNamespace(max_num_seqs=4)
    made = SimpleNamespace(scheduler_config=scheduling, num_speculative_tokens=0, use_v2_model_runner=False, additional_config={})
    carry(made, CoreOptions("channel", jump_forward=True, broadcaster=broadcaster))
    return made


@pytest.mark.parametrize("broadcaster", [None, BroadcasterOptions("somewhere", 0.1)])
def test_logits_are_tried_before_vllm_counts_what_is_compiled(broadcaster: BroadcasterOptions | None) -> None:
    """After its own warm-up each compilation is told, or refused."""
    worker = Worker(config(broadcaster))
    assert worker.compile_or_warm_up_model() == 1.5
    assert worker.done == ["logits are tried", "vLLM warms up"]
