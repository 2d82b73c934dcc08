"""What the door asks for grammars, where log lines tell requests apart."""

from __future__ import annotations

from deployments.api.constraining import Constraints
from deployments.api.protocol import ParsedRequest
from deployments.telemetry.logs import about_request
from grammar_service.messages import ReadyGrammar


class LoggedConstraints:
    """The first that each request comes to when it has its id."""

    def __init__(self, constraints: Constraints) -> None:
        self._constraints = constraints

    async def ready(self, request: ParsedRequest, tenant: str) -> ReadyGrammar | None:
        """See `Constraints`."""
        about_request(request.request_id)
        return await self._constraints.ready(request, tenant)
