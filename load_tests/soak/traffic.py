"""What is asked in a soak: all schemas in turn, over and over, and what a public port sees beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any

from load_tests.soak.schemas import schema

SEED = 29
MAX_TOKENS = 160
LEAVES, REFUSED, UNBOUNDED = 16, 25, 40
"""Every so many requests: the client leaves in the middle; the constraint is one that nobody can serve; there is none."""


class Kind(StrEnum):
    """How a request is asked, or what is to come of it."""

    WHOLE = "whole"
    STREAM = "stream"
    LEFT = "left"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Asked:
    """`body` is that of a chat."""

    kind: Kind
    body: dict[str, Any]


def traffic(requests: int, schemas: int) -> Iterator[Asked]:
    """Round by round, each schema once in each, in another order every time: after the first round nothing is new, and what has not been
    asked for the longest time comes next."""
    random, order = Random(SEED), list[int]()
    for number in range(requests):
        if not order:
            order = random.sample(range(schemas), schemas)
        yield _asked(number, order.pop())


def _asked(number: int, which: int) -> Asked:
    if number % REFUSED == REFUSED - 1:
        refused = {"type": "object", "properties": {"x": {"$ref": f"#/$defs/none_{number}"}}}
        return Asked(Kind.REFUSED, _body({"json": refused}, number, stream=False))
    kind = Kind.LEFT if number % LEAVES == LEAVES - 1 else Kind.STREAM if number % 2 else Kind.WHOLE
    constraint = {} if number % UNBOUNDED == UNBOUNDED - 1 else {"json": schema(which)}
    return Asked(kind, _body(constraint, number, stream=kind is not Kind.WHOLE))


def _body(constraint: dict[str, Any], number: int, *, stream: bool) -> dict[str, Any]:
    content = f"Answer as JSON, request {number}."
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": MAX_TOKENS, "seed": number, "stream": stream}
    return {**body, "structured_outputs": constraint} if constraint else body
