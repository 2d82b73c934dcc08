"""What a router reads of calls and of replicas' statistics, without knowing their types; what makes no sense counts as not said."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, runtime_checkable

from router.replica_load import LoadReport
from router.turns.progress import Progress

LONGEST = 1 << 24
"""Tokens or milliseconds: more is nonsense, and a sum of nonsense would be no number."""


@runtime_checkable
class RoutedCall(Protocol):
    """What a call says of itself: how many tokens its prompt has and its grammar is thought to force, how many sequences the engine is to
    compute for it, a name for what its prompt begins with, and which replica has just failed to answer it (its id); either may be empty.
    By its `tenant` and its weight it has its turn, and `progress`, if it is one, tells what it costs."""

    prompt_tokens: int
    forced_tokens: int
    sequences: int
    prefix: str
    avoid: str
    tenant: str
    weight: float
    progress: object


@dataclass(frozen=True, slots=True)
class CallFacts:
    tokens: int = 0
    prefix: str | None = None
    avoid: str = ""
    sequences: int = 1
    tenant: str = ""
    weight: float = 1.0
    progress: Progress | None = None


def read_call(arguments: Sequence[Any]) -> CallFacts:
    """Of a request's positional arguments, of which the first one that is a call counts."""
    for call in arguments:
        if isinstance(call, RoutedCall):
            tokens = int(_number(call.prompt_tokens) + _number(call.forced_tokens))
            sequences = max(1, int(_number(call.sequences)))
            prefix, avoid = str(call.prefix) if call.prefix else None, str(call.avoid or "")
            progress = call.progress if isinstance(call.progress, Progress) else None
            return CallFacts(tokens, prefix, avoid, sequences, str(call.tenant), _number(call.weight) or 1.0, progress)
    return CallFacts()


def read_report(replica: str, stats: Mapping[str, Any]) -> LoadReport | None:
    """What `record_routing_stats` of a replica has said; None where it says not when, or how many requests it has."""
    if not _is_number(stats.get("taken_at")) or not _is_number(stats.get("requests")):
        return None
    return LoadReport(
        replica,
        float(stats["taken_at"]),
        int(_number(stats["requests"])),
        int(_number(stats.get("prefill_tokens"))),
        _number(stats.get("step_ms")),
        int(_number(stats.get("step_tokens"))),
    )


def _number(value: object) -> float:
    return min(max(0.0, float(value)), LONGEST) if _is_number(value) else 0.0


def _is_number(value: object) -> TypeGuard[float]:
    # Compared, not asked whether it is finite: an integer may be too large for a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and -sys.float_info.max <= value <= sys.float_info.max
