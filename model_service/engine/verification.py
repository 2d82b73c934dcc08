"""What is asked of an engine core for a look-ahead, as arguments of ordinary requests (vLLM 0.32: `extra_args` in `sampling_params.py`),
and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from vllm.sampling_params import SamplingParams
from vllm.v1.outputs import LogprobsLists

from model_service.messages import TENANT_ARGUMENT

SAID = "maskcast_said"
"""How many of the prompt's tokens, ahead of its drafts, are the answer so far: a grammar holds from there on."""
DRAFTS = "maskcast_drafts"
"""How many of the prompt's last tokens are drafts: the request is their verification, and no more."""
LIKELIEST = "maskcast_likeliest"
"""How many of the likeliest tokens each row of a verification has."""
VERIFIED = "maskcast_verified"
"""The attribute of a step that holds its verifications, by request id: what is asked in the scheduler's output (`Asked`), the rows in the
model runner's (`LogprobsLists`)."""

MOST_DRAFTS = 16


@dataclass(frozen=True, slots=True)
class Asked:
    """`drafts`: token ids; those from the first that the grammar forbids are -1, and what comes behind it is of no use."""

    drafts: tuple[int, ...]
    likeliest: int


def verifying(params: SamplingParams, said: int, drafts: int, likeliest: int) -> SamplingParams:
    """Parameters of a request that verifies the last `drafts` tokens of its prompt."""
    asked = _child(params, 1)
    asked.extra_args = {**_whose(params), SAID: said, DRAFTS: drafts, LIKELIEST: likeliest}
    return asked


def continuing(params: SamplingParams, said: int, length: int, *, scored: bool) -> SamplingParams:
    """Those of one that goes on with an answer, greedily. `scored`: with the log-probability of each token."""
    asked = _child(params, length)
    asked.extra_args = {**_whose(params), SAID: said}
    asked.logprobs = 0 if scored else None
    return asked


def _whose(params: SamplingParams) -> dict[str, Any]:
    """The tenant's name: also for what a look-ahead asks of the core, tenants take turns."""
    extra = params.extra_args or {}
    return {TENANT_ARGUMENT: extra[TENANT_ARGUMENT]} if TENANT_ARGUMENT in extra else {}


def rows_of(asked: Asked, token_ids: np.ndarray[Any, Any], log_probabilities: np.ndarray[Any, Any]) -> LogprobsLists:
    """From what was computed for some requests together, int and float32 `[d + 1, 1 + most likeliest]`: first the draft's own (at the last
    row: any), then the likeliest."""
    wide = 1 + asked.likeliest
    ranks = np.zeros(len(token_ids), dtype=np.int64)  # nobody asks for them
    return LogprobsLists(token_ids[:, :wide], log_probabilities[:, :wide], ranks)


def _child(params: SamplingParams, most: int) -> SamplingParams:
    """Of the same grammar and with the same ends as the request whose answer it is."""
    asked = params.clone()
    asked.temperature, asked.top_p, asked.top_k = 0.0, 1.0, 0
    asked.max_tokens, asked.min_tokens = most, 0
    asked.stop, asked.output_text_buffer_length = [], 0
    asked.seed, asked.detokenize = None, False
    return asked
