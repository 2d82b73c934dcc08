"""The logits that a model makes, ahead of the first step (vLLM 0.32: `compute_logits` of a model, as `_dummy_sampler_run` in
`v1/worker/gpu_model_runner.py` calls it, and `v1/worker/lora_model_runner_mixin.py`).

A mask says of each token of the vocabulary whether it is allowed. Logits that are wider have tokens that nobody would forbid, and narrower
ones end a step; what a model's configuration says of its vocabulary is not what its weights have to make of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from vllm.distributed import get_pp_group

from model_service.errors import EngineSettingsError


def first_logits(runner: Any) -> torch.Tensor | None:
    """Logits [1, V] of a place without a meaning, of the type and with the padding that steps have; None: this worker's stage of the
    pipeline makes none. All workers of a stage compute them together, without gradients."""
    if not get_pp_group().is_last_rank:
        return None
    config, one = runner.model_config, np.ones(1, dtype=np.int32)
    hidden = torch.zeros(1, config.get_hidden_size(), dtype=config.dtype, device=runner.device)
    with runner.maybe_dummy_run_with_lora(runner.lora_config, one, one):
        logits: torch.Tensor | None = runner.model.compute_logits(hidden)
    return logits


def check_width(widths: Sequence[int | None], vocab_size: int) -> None:
    """`widths`: of the logits of each worker, None where it has none; `vocab_size`: what masks are made for.

    Raises:
        EngineSettingsError: they differ.
    """
    others = sorted({width for width in widths if width is not None} - {vocab_size})
    if others:
        raise EngineSettingsError(
            f"the model's logits are for {others[0]} tokens, its configuration is of {vocab_size}: no constraint would hold. Correct "
            "`vocab_size` in the model's config.json, or by `model.engine_args: {hf_overrides: {vocab_size: …}}`"
        )
