"""What a model replica answers a call with, besides text."""

from __future__ import annotations

from dataclasses import dataclass

ENGINE_DEAD = "engine_dead"
"""The code of a failure: the engine has ended."""


@dataclass(frozen=True, slots=True)
class Head:
    """First item of every answer. Status 200 with `stream` is followed by pieces of a server-sent event stream, anything
    else by one JSON body."""

    status: int
    stream: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """Stands in place of a head, or ends a stream: the replica could not answer.

    `code` is a `GrammarError` code, or `engine_dead` when the engine of `replica` ended; `computing`: it had the call.
    """

    code: str
    message: str
    pointer: str | None = None
    replica: str = ""
    computing: bool = True
