"""Who calls, and what he may."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

from deployments.config import KeyLimits
from deployments.errors import ApiError


class Scope(StrEnum):
    """What a key is for. Every key sees the model, and reads the grammars of its tenant."""

    GENERATE = "generate"
    GRAMMARS_WRITE = "grammars:write"
    METRICS = "metrics"
    ADMIN = "admin"
    """All of these, and every tenant's grammars."""


@dataclass(frozen=True, slots=True)
class Caller:
    """`name` is the tenant's, empty where everybody may call. `weight` is its share beside other tenants."""

    name: str
    scopes: frozenset[Scope]
    limits: KeyLimits
    weight: float = 1.0

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def require(self, scope: Scope) -> None:
        """Raises ApiError (403)."""
        if not self.may(scope):
            raise ApiError(
                HTTPStatus.FORBIDDEN,
                f"This API key is not for that: it needs the scope '{scope}'.",
                code="insufficient_scope",
                kind="permission_error",
            )
