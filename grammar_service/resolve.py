"""From what the user asked for to the key under which the whole cluster knows it."""

from __future__ import annotations

from dataclasses import dataclass

from grammar_service.backends import select_backend, select_stopgap
from grammar_service.key import grammar_key
from grammar_service.limits import Limits, check_limits
from grammar_service.messages import CompileRequest, Stopgap
from grammar_service.spec import GrammarSpec


@dataclass(frozen=True, slots=True)
class ResolvedGrammar:
    """A spec within the limits, the backend that enforces all of it, and its key; `stopgap` enforces all of it too, and is ready
    sooner. Whoever fetches a pinned one keeps it in memory. `artifact` is the encoded artifact, where it is small enough to travel
    with every request. `written` is what the backend's library will be given, where the backend is quick (`Backend.written`).

    Requests are routed by `home`, which is the key, or for a stopgap the key of what it stands for: both are wanted on one replica."""

    spec: GrammarSpec
    key: str
    backend: str
    stopgap: Stopgap | None = None
    pinned: bool = False
    artifact: bytes | None = None
    written: str | None = None
    home: str = ""

    def request(self, tenant: str = "", deadline_s: float | None = None, pinned: bool = False) -> CompileRequest:
        """What to ask the compile pool; a pinned grammar is compiled ahead, so that it needs no stopgap."""
        stopgap = None if pinned else self.stopgap
        return CompileRequest(self.spec, self.key, self.backend, deadline_s, pinned, tenant, stopgap, self.written)


def resolve(spec: GrammarSpec, limits: Limits, fingerprint: str) -> ResolvedGrammar:
    """Pure and quick: nothing is compiled.

    Raises:
        GrammarError: the spec is over a limit, not valid, or enforced by no backend.
    """
    check_limits(spec, limits)
    backend = select_backend(spec)
    quick = select_stopgap(spec, backend)
    stopgap = Stopgap(grammar_key(spec, quick.name, quick.version, fingerprint), quick.name, quick.written(spec)) if quick else None
    key = grammar_key(spec, backend.name, backend.version, fingerprint)
    return ResolvedGrammar(spec, key, backend.name, stopgap, written=backend.written(spec), home=key)
