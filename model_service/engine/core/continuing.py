"""Requests whose prompts end with the answer so far (vLLM 0.32: `v1/core/sched/scheduler.py`): their grammar holds from its beginning."""

from __future__ import annotations

from collections.abc import Sequence

from vllm.v1.request import Request, RequestStatus

from model_service.engine.core.backend import KeyedGrammar
from model_service.engine.verification import DRAFTS, SAID


class Continuing:
    """Of one scheduler: its requests with a grammar that go on with an answer, or begin one."""

    def __init__(self) -> None:
        self._said: dict[str, list[int]] = {}

    def added(self, request: Request) -> None:
        extra = (request.sampling_params.extra_args if request.sampling_params is not None else None) or {}
        said = extra.get(SAID)
        if said is not None and request.use_structured_output:
            end = request.num_prompt_tokens - extra.get(DRAFTS, 0)
            self._said[request.request_id] = request.prompt_token_ids[end - said : end]

    def __len__(self) -> int:
        return len(self._said)

    def __contains__(self, request_id: object) -> bool:
        return request_id in self._said

    def ended(self, request_id: str) -> None:
        self._said.pop(request_id, None)

    def unblocked(self, request: Request, status: RequestStatus) -> bool:
        """The request had that status and may be scheduled now. If it is its grammar that has come, it takes the answer so far. False: it
        does not allow it."""
        said = self._said.get(request.request_id)
        if said is None or status != RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR:
            return True
        grammar = request.structured_output_request.grammar
        assert isinstance(grammar, KeyedGrammar)
        return grammar.advance(said)

    def context(self, request: Request) -> Sequence[int]:
        """The answer, as far as it is known."""
        said = self._said.get(request.request_id)
        return request.output_token_ids if said is None else [*said, *request.output_token_ids]
