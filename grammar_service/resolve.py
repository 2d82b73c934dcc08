"""From what the user asked for to the key under which the whole cluster knows it."""

from __future__ import annotations

from dataclasses import dataclass

from grammar_service.backends import select_backend
from grammar_service.key import grammar_key
from grammar_service.limits import Limits, check_limits
from grammar_service.spec import GrammarSpec


@dataclass(frozen=True, slots=True)
class ResolvedGrammar:
    """A spec within the limits, the backend that enforces all of it, and its key."""

    spec: GrammarSpec
    key: str
    backend: str


def resolve(spec: GrammarSpec, limits: Limits, fingerprint: str) -> ResolvedGrammar:
    """Pure and quick: nothing is compiled.

    Raises:
        GrammarError: the spec is over a limit, not valid, or enforced by no backend.
    """
    check_limits(spec, limits)
    backend = select_backend(spec)
    return ResolvedGrammar(spec, grammar_key(spec, backend.name, backend.version, fingerprint), backend.name)
