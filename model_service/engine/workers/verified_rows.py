"""Rows of logits for drafts (vLLM 0.32: `_update_states`, `_prepare_inputs`, `_sample` in `v1/worker/gpu_model_runner.py`, first model
runner).

vLLM computes logits for the last token of a request; for one that verifies d drafts, they are computed for the last d + 1. All but the last
of these are taken away before vLLM samples: every request, that one too, is sampled from its last row, by the same code and with the same
generators as in a step without drafts. Its rejection sampler is not used; it would take part in the sampling of all requests of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.outputs import LogprobsLists

from model_service.engine.verification import VERIFIED, Asked, rows_of


def hook_verification(runner: Any) -> None:
    """Let the runner compute the rows of whatever its steps verify, and put them into its outputs."""
    _VerifiedRows(runner).hook()


@dataclass(frozen=True, slots=True)
class _Layout:
    """Rows of a step's logits: request by request, in the order of the batch. `first`, `last`: each request's."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]

    @classmethod
    def of(cls, drafts: NDArray[np.int64]) -> _Layout:
        last = np.cumsum(drafts + 1) - 1
        return cls(last - drafts, last)

    def places(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of the step's tokens the rows are of, if each request has so many of these."""
        wide = self.last - self.first + 1
        return np.arange(wide.sum()) + np.repeat(np.cumsum(tokens) - 1 - self.last, wide)


class _VerifiedRows:
    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._update = runner._update_states
        self._prepare = runner._prepare_inputs
        self._sample = runner._sample
        self._finish = runner.sample_tokens
        self._step: tuple[_Layout, Mapping[str, Asked]] | None = None
        self._rows: dict[str, LogprobsLists] = {}

    def hook(self) -> None:
        runner = self._runner
        runner._update_states, runner._prepare_inputs = self._updated, self._prepared
        runner._sample, runner.sample_tokens = self._sampled, self._finished

    def _updated(self, output: SchedulerOutput) -> Any:
        # vLLM would write drafts behind the tokens that it knows, where these are among them.
        drafts, output.scheduled_spec_decode_tokens = output.scheduled_spec_decode_tokens, {}
        try:
            return self._update(output)
        finally:
            output.scheduled_spec_decode_tokens = drafts

    def _prepared(self, output: SchedulerOutput, num_scheduled_tokens: NDArray[np.int32]) -> Any:
        prepared = self._prepare(output, num_scheduled_tokens)
        asked: Mapping[str, Asked] | None = getattr(output, VERIFIED, None)
        if not asked:
            self._step = None
            return prepared
        drafts = np.zeros(len(num_scheduled_tokens), dtype=np.int64)
        for request_id, one in asked.items():
            drafts[self._row(request_id)] = len(one.drafts)
        layout = _Layout.of(drafts)
        self._step = layout, asked
        places = layout.places(num_scheduled_tokens.astype(np.int64))
        return torch.from_numpy(places).to(self._runner.device), None, int(drafts.max()) + 1

    def _sampled(self, logits: torch.Tensor | None, metadata: Any) -> Any:
        step, self._step = self._step, None
        if step is None or logits is None:
            return self._sample(logits, metadata)
        layout, asked = step
        self._rows = self._computed(logits, layout, asked)
        return self._sample(logits[torch.from_numpy(layout.last).to(logits.device)], metadata)

    def _finished(self, grammar_output: Any) -> Any:
        output = self._finish(grammar_output)
        if self._rows:
            setattr(output, VERIFIED, self._rows)
            self._rows = {}
        return output

    def _computed(self, logits: torch.Tensor, layout: _Layout, asked: Mapping[str, Asked]) -> dict[str, LogprobsLists]:
        """From logits under their masks, before any temperature."""
        rows = [self._row(request_id) for request_id in asked]
        places = np.concatenate([np.arange(layout.first[row], layout.last[row] + 1) for row in rows])
        own = torch.tensor([token for one in asked.values() for token in (*one.drafts, 0)], device=logits.device)  # behind the last: any
        log_probabilities = logits[torch.from_numpy(places).to(logits.device)].log_softmax(dim=-1, dtype=torch.float32)
        most = min(max(one.likeliest for one in asked.values()), logits.shape[-1])
        values, tokens = log_probabilities.topk(most, dim=-1)
        all_tokens = torch.cat((own[:, None], tokens), dim=1).cpu().numpy()
        of_own = log_probabilities.gather(1, own.clamp(min=0)[:, None]).masked_fill(own[:, None] < 0, -torch.inf)
        all_values = torch.cat((of_own, values), dim=1).cpu().numpy()
        ends = np.cumsum([len(one.drafts) + 1 for one in asked.values()])[:-1]
        parts = zip(asked.items(), np.split(all_tokens, ends), np.split(all_values, ends), strict=True)
        return {request_id: rows_of(one, of_tokens, of_values) for (request_id, one), of_tokens, of_values in parts}

    def _row(self, request_id: str) -> int:
        return int(self._runner.input_batch.req_id_to_index[request_id])
