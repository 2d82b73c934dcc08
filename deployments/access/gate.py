"""Where requests enter and leave, each with what it costs its tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from deployments.access.caller import Caller
from deployments.access.charges import TokenMeter, asked_tokens, check_possible, headers, refusal
from deployments.access.ledger import Admission, Ledger
from deployments.access.usage_event import asking_for_usage, without_usage
from deployments.access.window import Verdict
from model_service.messages import Endpoint


class Visit:
    """A request between `Gate.enter` and `leave`; `headers` are for its answer. `counts`: it matters to others what it takes."""

    def __init__(self, ledger: Ledger | None = None, admission: Admission | None = None, *, counts: bool = False) -> None:
        self._counts = counts
        self._ledger = ledger
        self._admission = admission
        self._hides_usage = False
        self.meter = TokenMeter(admission.cost if admission else 0)
        """Whoever asks engines has to tell it."""
        self.headers = headers(admission.standing) if admission else {}

    def metered(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The body that the request is answered by: a stream whose tokens count ends with its usage."""
        if not self._counts:
            return body
        body, self._hides_usage = asking_for_usage(body)
        return body

    def piece(self, text: str) -> str:
        """What the client gets of a piece of the answer, which is one of whole events or all of it."""
        return without_usage(text) if self._hides_usage else text

    def leave(self) -> None:
        """Once is enough. What was charged stays so, as far as it is not known to be too much."""
        admission, self._admission = self._admission, None
        if admission is not None and self._ledger is not None:
            self._ledger.leave(admission, self.meter.tokens)


class Gate:
    """`prompt_tokens` estimates those of a body; `longest` is the model's context, in tokens, and `most` an answer's, None: as
    many as there is room for."""

    def __init__(self, ledger: Ledger, prompt_tokens: Callable[[Mapping[str, Any]], int], longest: int, most: int | None = None) -> None:
        self._ledger = ledger
        self._prompt_tokens = prompt_tokens
        self._longest = longest
        self._most = longest if most is None else most

    async def enter(self, caller: Caller, endpoint: Endpoint, body: Mapping[str, Any]) -> Visit:
        """Raises ApiError: 429 where a limit of the caller's is reached, 400 where the request is over one alone."""
        most = caller.limits.tokens_per_minute
        prompt = self._prompt_tokens(body) if most is not None else 0
        longest_answer = min(self._most, caller.bounds.max_tokens or self._most)
        cost = asked_tokens(endpoint, body, prompt, self._longest, longest_answer) if most is not None else 0
        check_possible(most, cost)
        admission = await self._admitted(caller, cost)
        if admission is None:
            return Visit(counts=bool(caller.name))
        return Visit(self._ledger, admission, counts=bool(caller.name) or most is not None)

    @asynccontextmanager
    async def counted(self, caller: Caller) -> AsyncIterator[Mapping[str, str]]:
        """For a request that takes no tokens: it gives headers for its answer. Raises ApiError (429)."""
        admission = await self._admitted(caller, 0)
        try:
            yield headers(admission.standing) if admission else {}
        finally:
            if admission is not None:
                self._ledger.leave(admission, 0)

    async def _admitted(self, caller: Caller, cost: int) -> Admission | None:
        admission = await self._ledger.enter(caller, cost)
        if admission is not None and admission.standing.verdict is not Verdict.ADMITTED:
            raise refusal(admission.standing)
        return admission

    async def close(self) -> None:
        await self._ledger.close()
