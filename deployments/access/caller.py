"""Who calls, and what he may."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

from deployments.access.request_bounds import NO_BOUNDS, RequestBounds
from deployments.config import KeyLimits
from deployments.errors import ApiError


class Scope(StrEnum):
    """What a key is for. Every key sees the model, and reads the grammars of its tenant."""

    GENERATE = "generate"
    GRAMMARS_WRITE = "grammars:write"
    METRICS = "metrics"
    PRIORITY = "priority"
    """To be scheduled before others, where the engine goes by priority."""
    ADMIN = "admin"
    """All of these, and every tenant's grammars."""


@dataclass(frozen=True, slots=True)
class Caller:
    """`name` is the tenant's, empty where everybody may call. `weight` is its share beside other tenants."""

    name: str
    scopes: frozenset[Scope]
    limits: KeyLimits
    weight: float = 1.0
    bounds: RequestBounds = NO_BOUNDS

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def require(self, scope: Scope, param: str | None = None) -> None:
        """Raises ApiError (403); `param` is the field that needs the scope."""
        if not self.may(scope):
            raise ApiError(
                HTTPStatus.FORBIDDEN,
                f"This API key is not for that: it needs the scope '{scope}'.",
                code="insufficient_scope",
                param=param,
                kind="permission_error",
            )


ANYBODY = Caller("", frozenset(Scope), KeyLimits())
"""Who calls by handle, or where there are no keys."""
