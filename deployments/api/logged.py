"""A wrapper around the grammars of requests, which gives log lines the id of their request."""

from __future__ import annotations

from collections.abc import Callable

from deployments.api.constraining import Constraints
from deployments.api.protocol import ParsedRequest
from deployments.telemetry.logs import about_request
from grammar_service.messages import ReadyGrammar


class LoggedConstraints:
    """The first that each request comes to when it has its id. `trace_id`: see `LoggedRequests`."""

    def __init__(self, constraints: Constraints, trace_id: Callable[[], str]) -> None:
        self._constraints = constraints
        self._trace_id = trace_id

    async def ready(self, request: ParsedRequest, tenant: str) -> ReadyGrammar | None:
        """See `Constraints`."""
        about_request(request.request_id, tenant, self._trace_id())
        return await self._constraints.ready(request, tenant)
