"""What a compile replica counts; every counter only grows."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from grammar_service.errors import CompileFailed, CompileTimeout, GrammarError, MaskcastError, PoolBusy


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
