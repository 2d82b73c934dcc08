"""From the constraint of a request to a grammar that is ready."""

from __future__ import annotations

from typing import Protocol

from deployments.api.protocol import ParsedRequest
from deployments.constraints.forms import NamedGrammar, refusal
from deployments.grammars.prepared import PreparedGrammars
from deployments.grammars.registry import GrammarRegistry
from grammar_service.errors import GrammarError, UnsupportedGrammar
from grammar_service.messages import ReadyGrammar


class Constraints(Protocol):
    """Who makes grammars ready for requests."""

    async def ready(self, request: ParsedRequest, tenant: str) -> ReadyGrammar | None:
        """The grammar of what the request asks for, None where it asks for nothing.

        Raises:
            ApiError: it cannot be made ready; the error names the request's field.
            PoolBusy, PoolUnavailable: not now.
        """


class Constraining:
    def __init__(self, grammars: PreparedGrammars, registry: GrammarRegistry) -> None:
        self._grammars = grammars
        self._registry = registry

    async def ready(self, request: ParsedRequest, tenant: str) -> ReadyGrammar | None:
        """See `Constraints`."""
        if (requested := request.requested) is None:
            return None
        try:
            if isinstance(requested, NamedGrammar):
                return await self._grammars.ready(await self._registry.spec(requested, tenant), tenant, pinned=True)
            return await self._grammars.ready(requested.spec, tenant, requested.deadline_s, relax=request.check and request.can_be_checked)
        except UnsupportedGrammar as error:
            advice = "" if not request.check or request.can_be_checked else "; 'check' is not for tools, tags and grammars with a name"
            raise refusal(UnsupportedGrammar(error.message + advice, error.pointer), requested) from None
        except GrammarError as error:
            raise refusal(error, requested) from None
