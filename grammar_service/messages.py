"""What crosses between the ingress, the model replicas and the compile pool; immutable and picklable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from grammar_service.errors import (
    CompileFailed,
    CompileTimeout,
    GrammarError,
    GrammarTooLarge,
    InvalidGrammar,
    MaskcastError,
    PoolBusy,
    PoolUnavailable,
    UnsupportedGrammar,
)
from grammar_service.spec import GrammarSpec
from grammar_service.warning import ConstraintWarning

SMALL_BYTES = 32 * 1024
"""An artifact of that size costs less to send along with a request than to ask for."""

Source = Literal["memory", "redis", "compiled"]

_GRAMMAR_ERRORS: dict[str, type[GrammarError]] = {
    kind.code: kind for kind in (InvalidGrammar, UnsupportedGrammar, GrammarTooLarge, CompileTimeout, CompileFailed)
}
_POOL_ERRORS: dict[str, type[MaskcastError]] = {"pool_busy": PoolBusy, "pool_unavailable": PoolUnavailable}


@dataclass(frozen=True, slots=True)
class Stopgap:
    """The same grammar on a backend that is ready at once: its key and backend, and the spec as that backend's library will be given it
    (`Backend.library_source`), so that it need not be worked out twice while somebody waits."""

    key: str
    backend: str
    library_source: str | None = None


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """Make the artifact of `key` ready. `deadline_s` None means the pool's own deadline; a longer one is cut to it. A pinned one
    stays in the memory of the replica that makes it. `tenant` is who waits for its turn. `stopgap` is what may be answered instead
    while the artifact is not there yet. `library_source` is what the backend's library is to be given for the spec, None where that
    is still to be worked out. `trace`: the span that asks, as a `traceparent` (W3C Trace Context); empty: nobody traces it.
    `request_id`: of the request that was the first to ask, for log lines."""

    spec: GrammarSpec
    key: str
    backend: str
    deadline_s: float | None = None
    pinned: bool = False
    tenant: str = ""
    stopgap: Stopgap | None = None
    library_source: str | None = None
    trace: str = ""
    request_id: str = ""

    def on_stopgap(self) -> CompileRequest | None:
        """The request for the stopgap itself."""
        quick = self.stopgap
        if quick is None:
            return None
        return replace(self, key=quick.key, backend=quick.backend, library_source=quick.library_source, stopgap=None)


@dataclass(frozen=True, slots=True)
class Compiled:
    """The artifact of `key`, encoded; where it came from; milliseconds that the answer took; the backend that made it.

    The key is the request's, or its stopgap's."""

    key: str
    blob: bytes
    source: Source
    cost_ms: float
    backend: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """An artifact that the pool holds: the key, backend and source of a `Compiled`, and its bytes where they are few (SMALL_BYTES)."""

    key: str
    backend: str
    artifact: bytes | None = None
    source: Source = "compiled"

    @classmethod
    def of(cls, compiled: Compiled) -> Prepared:
        return cls(compiled.key, compiled.backend, compiled.blob if len(compiled.blob) <= SMALL_BYTES else None, compiled.source)


@dataclass(frozen=True, slots=True)
class ReadyGrammar:
    """A grammar for an engine, with the key and backend of its artifact. Whoever fetches a pinned one keeps it in memory. `artifact` is
    the encoded artifact, where it is small enough to travel with every request. `warnings` are for the answer. `left_out` are the JSON
    pointers of what the user's schema has besides: the answer is still to be checked.

    Requests are routed by `routing_key`, which is the key, or for a stopgap the key of what it stands for: both are wanted on one
    replica."""

    spec: GrammarSpec
    key: str
    backend: str
    routing_key: str
    pinned: bool = False
    artifact: bytes | None = None
    warnings: tuple[ConstraintWarning, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """Judge finished answers by the JSON Schema of a spec, within `deadline_s`."""

    spec: GrammarSpec
    answers: tuple[str, ...]
    deadline_s: float
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What is wrong with each answer of an `AnswerCheck`, None where nothing is."""

    faults: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no artifact: the code of an error of `grammar_service.errors`, its message, its JSON pointer."""

    code: str
    message: str
    pointer: str | None = None

    @classmethod
    def of(cls, error: MaskcastError) -> Refusal:
        """The refusal that tells of a grammar's fault, a busy pool or an unavailable one."""
        if isinstance(error, GrammarError):
            return cls(error.code, error.message, error.pointer)
        code = next((code for code, kind in _POOL_ERRORS.items() if isinstance(error, kind)), "pool_unavailable")
        return cls(code, str(error))

    def error(self) -> MaskcastError:
        """The error to raise where the refusal arrives: a GrammarError, PoolBusy or PoolUnavailable."""
        if self.code in _GRAMMAR_ERRORS:
            return _GRAMMAR_ERRORS[self.code](self.message, self.pointer)
        return _POOL_ERRORS.get(self.code, PoolUnavailable)(self.message)
