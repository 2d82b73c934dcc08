"""What passes between the ingress and a model replica."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from grammar_service.resolve import ResolvedGrammar

KEY_ARGUMENT = "maskcast_key"
"""The extra argument of vLLM's (`vllm_xargs`) in which a grammar key travels through its serving classes."""


class Endpoint(StrEnum):
    CHAT = "chat"
    COMPLETION = "completion"


@dataclass(frozen=True, slots=True)
class Call:
    """One request for the engine: an OpenAI body without its constraint fields, and the constraint."""

    endpoint: Endpoint
    request_id: str
    body: dict[str, Any]
    constraint: ResolvedGrammar | None


@dataclass(frozen=True, slots=True)
class Head:
    """First item of every answer. Status 200 with `stream` is followed by pieces of a server-sent event stream, anything
    else by one JSON body."""

    status: int
    stream: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """Stands in place of a head, or ends a stream: the replica could not answer.

    `code` is a `GrammarError` code, or `engine_dead` when the engine ended.
    """

    code: str
    message: str
    pointer: str | None = None


ENGINE_DEAD = "engine_dead"


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """`grammar` holds the replica's grammar counters (memory_hits, redis_hits, pool_calls, corrupt)."""

    replica: str
    running: int
    grammar: dict[str, int]
