"""Drafts that an ordinary request verifies (vLLM 0.32: `v1/core/sched/scheduler.py`).

The drafts are the last tokens of its prompt. The step that ends the prompt computes all of them and the token before them, d + 1 rows: no
hit in the prefix cache and no border of a chunk reaches into those. To whoever fills and applies masks the drafts are scheduled as vLLM's
own would be, so that each row gets the mask of its place; workers are told apart what else they need, and what is verified ends with that
step. Drafts that fail are right all the same where they stand: as a prompt, which the cache knows by its tokens.
"""

from __future__ import annotations

from collections.abc import Mapping

from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.engine import EngineCoreOutputs
from vllm.v1.outputs import LogprobsLists, ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

from model_service.engine.core.backend import KeyedGrammar
from model_service.engine.verification import DRAFTS, LIKELIEST, VERIFIED, Asked


class Verifying:
    """Of one scheduler, whose own are `manager` and `requests`."""

    def __init__(self, manager: StructuredOutputManager, requests: Mapping[str, Request]) -> None:
        self._manager = manager
        self._requests = requests
        self._drafts: dict[str, int] = {}
        self._failed = set[str]()

    def added(self, request: Request) -> None:
        drafts = (request.sampling_params.extra_args or {}).get(DRAFTS) if request.sampling_params is not None else None
        if drafts is not None:
            self._drafts[request.request_id] = int(drafts)

    def ended(self, request_id: str) -> None:
        self._drafts.pop(request_id, None)

    def __contains__(self, request_id: object) -> bool:
        return request_id in self._drafts

    def cacheable(self, request: Request, cached: int, block_size: int) -> int:
        """How many of `cached` tokens may come from the prefix cache, whole blocks."""
        drafts = self._drafts.get(request.request_id)
        return cached if drafts is None else min(cached, (request.num_tokens - 1 - drafts) // block_size * block_size)

    def reserved(self, request: Request, computed: int, new: int) -> int:
        """How many of `new` tokens behind `computed` may be computed now: the last d + 1 not in parts."""
        drafts = self._drafts.get(request.request_id)
        left = request.num_tokens - computed - new
        return new if drafts is None or not 0 < left <= drafts else max(0, new - (drafts + 1 - left))

    def scheduled(self, output: SchedulerOutput) -> None:
        """Name the drafts of the verifications that the step completes."""
        asked: dict[str, Asked] = {}
        for request_id, drafts in self._drafts.items():
            request = self._requests[request_id]
            if request_id in output.num_scheduled_tokens and request.num_computed_tokens == request.num_tokens:
                asked[request_id] = self._asked(request, drafts)
        if asked:
            setattr(output, VERIFIED, asked)
            output.scheduled_spec_decode_tokens = {request_id: list(one.drafts) for request_id, one in asked.items() if one.drafts}

    def computed(self, output: SchedulerOutput) -> None:
        """The step's masks have been applied: nothing of it is to be counted as drafts of vLLM's own."""
        if hasattr(output, VERIFIED):
            output.scheduled_spec_decode_tokens = {}

    def check_masks(self, request: Request) -> None:
        """Discard the request's rows if its grammar has failed: they were computed without masks."""
        asked = request.structured_output_request
        if asked is not None and isinstance(asked.grammar, KeyedGrammar) and asked.grammar.must_end:
            self._failed.add(request.request_id)

    def answer(self, outputs: Mapping[int, EngineCoreOutputs], computed: ModelRunnerOutput) -> None:
        """Put the rows of verifications into the outputs, but for those that the grammar has not masked."""
        rows: Mapping[str, LogprobsLists] = getattr(computed, VERIFIED, {})
        for client in outputs.values() if rows else ():
            for output in client.outputs:
                if output.request_id in rows:
                    output.new_logprobs = None if output.request_id in self._failed else rows[output.request_id]
        self._failed.clear()

    def _asked(self, request: Request, drafts: int) -> Asked:
        tokens = request.prompt_token_ids[request.num_tokens - drafts :]
        allowed = len(self._manager.validate_tokens(request, tokens))
        likeliest = int(request.sampling_params.extra_args[LIKELIEST])
        return Asked((*tokens[:allowed], *[-1] * (drafts - allowed)), likeliest)
