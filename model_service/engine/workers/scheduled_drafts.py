"""Drafts that come with the step (vLLM 0.32: `v1/spec_decode/custom_class_proposer.py`, `v1/worker/gpu_model_runner.py`,
`v1/sample/thinking_budget_state.py`)."""

from __future__ import annotations

from copy import copy
from typing import Any

import torch
from vllm.utils.platform_utils import is_pin_memory_available
from vllm.v1.sample.logits_processor import build_logitsprocs
from vllm.v1.spec_decode.metadata import SpecDecodeMetadata


class ScheduledDrafts:
    """A drafter for vLLM's workers that drafts nothing: the scheduler does, which knows the grammar. vLLM verifies drafts if it has one."""

    def __init__(self, config: Any) -> None:
        """Of vLLM's configuration it needs nothing."""

    def load_model(self, model: Any) -> None:
        """It has none."""

    def propose(self, sampled_token_ids: list[list[int]], *_: Any, **__: Any) -> list[list[int]]:
        return [[] for _ in sampled_token_ids]


def hook_sampling(runner: Any) -> None:
    """Sample steps that have no drafts as without a drafter, which knows all that requests may ask for: where there is one, vLLM leaves
    `min_p` and `logit_bias` out, and the log-probabilities of chosen tokens in every step. Budgets of reasoning must hear of that, or they
    write the end of one request's reasoning into the logits of another."""
    config = copy(runner.vllm_config)
    config.speculative_config = None
    runner.input_batch.logitsprocs = build_logitsprocs(config, runner.device, is_pin_memory_available(), runner.is_pooling_model)
    sample = runner._sample

    def sampled(logits: torch.Tensor | None, drafts: SpecDecodeMetadata | None) -> Any:
        has_drafts = drafts is not None and any(drafts.num_draft_tokens)
        if (budgets := runner.input_batch.thinking_budget_state_holder) is not None:
            budgets.in_spec_mode = has_drafts
        return sample(logits, drafts if has_drafts else None)

    runner._sample = sampled
