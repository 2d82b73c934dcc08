"""Requests whose prompts end with the answer so far (vLLM 0.32: `v1/core/sched/scheduler.py`): their grammar holds from its beginning."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from vllm.v1.request import Request, RequestStatus

from model_service.engine.core.backend import KeyedGrammar
from model_service.engine.verification import DRAFTS, SAID

REPLAY_S = 0.005
"""Seconds of each step in which matchers replay answers. Other requests wait meanwhile. One answer of 2,000 tokens takes 2 to 40 ms."""
_CHUNK = 32
"""Tokens replayed between two readings of the clock."""


@dataclass(slots=True)
class _Replay:
    """The answer so far, and how many of its tokens the matcher has accepted."""

    tokens: list[int]
    accepted: int = 0


class Continuing:
    """Of one scheduler: its requests with a grammar that go on with an answer, or begin one."""

    def __init__(self) -> None:
        self._said: dict[str, _Replay] = {}
        self._left_s = REPLAY_S

    def added(self, request: Request) -> None:
        extra = (request.sampling_params.extra_args if request.sampling_params is not None else None) or {}
        said = extra.get(SAID)
        if said is not None and request.use_structured_output:
            end = request.num_prompt_tokens - extra.get(DRAFTS, 0)
            self._said[request.request_id] = _Replay(request.prompt_token_ids[end - said : end])

    def __len__(self) -> int:
        return len(self._said)

    def __contains__(self, request_id: object) -> bool:
        return request_id in self._said

    def ended(self, request_id: str) -> None:
        self._said.pop(request_id, None)

    def begin_step(self) -> None:
        """Every step has the whole of REPLAY_S."""
        self._left_s = REPLAY_S

    def unblocked(self, request: Request, status: RequestStatus) -> bool | None:
        """The request had that status and may be scheduled now. If it is its grammar that has come, it takes the answer so far. False: it
        does not allow it; None: it takes more of it in the next step."""
        said = self._said.get(request.request_id)
        if said is None or status != RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR:
            return True
        grammar = request.structured_output_request.grammar
        assert isinstance(grammar, KeyedGrammar)
        while said.accepted < len(said.tokens):
            if self._left_s <= 0:
                return None
            began, part = time.perf_counter(), said.tokens[said.accepted : said.accepted + _CHUNK]
            if not grammar.advance(part):
                return False
            said.accepted += len(part)
            self._left_s -= time.perf_counter() - began
        return True

    def context(self, request: Request) -> Sequence[int]:
        """The answer, as far as it is known."""
        said = self._said.get(request.request_id)
        return request.output_token_ids if said is None else [*said.tokens, *request.output_token_ids]
