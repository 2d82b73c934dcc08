"""What a compile replica counts, where every counter only grows, and which times it tells."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Protocol

from grammar_service.errors import CompileFailed, CompileTimeout, GrammarError, MaskcastError, PoolBusy


class CompileTimes(Protocol):
    """Who is told of times, in seconds, each with the name of a grammar's backend."""

    def answered(self, tier: str, backend: str, seconds: float) -> None:
        """A request, with the grammar from that tier (`messages.Source`, or `stopgap`)."""

    def waited(self, backend: str, seconds: float) -> None:
        """A compile, for a child that was free."""

    def compiled(self, backend: str, compile_s: float, load_s: float) -> None:
        """It took so long, and so will loading what it has made."""


@dataclass(slots=True)
class CompilerCounters:
    """`stopgaps` counts answers on a quick backend in place of an artifact still to be made."""

    requests: int = 0
    compiled: int = 0
    stopgaps: int = 0
    refused: int = 0
    timed_out: int = 0
    failed: int = 0
    busy: int = 0
    unavailable: int = 0

    def count(self, error: MaskcastError) -> None:
        match error:
            case CompileTimeout():
                self.timed_out += 1
            case CompileFailed():
                self.failed += 1
            case GrammarError():
                self.refused += 1
            case PoolBusy():
                self.busy += 1
            case _:
                self.unavailable += 1

    def as_dict(self) -> dict[str, int]:
        counters: dict[str, int] = asdict(self)
        return counters
