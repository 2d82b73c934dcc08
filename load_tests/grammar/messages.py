"""What a benchmark and its measuring child say to each other: one assignment, then a line of JSON for every step."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from load_tests.corpus.cases import Case

Values = dict[str, float | str | bool | None]


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Where artifacts are shared during the benchmark."""

    url: str
    password: str
    namespace: str


class Assignment(msgspec.Struct, frozen=True):
    """`part` of the benchmark to run over `cases`, `rounds` times each. `warm` is made ready before anything is measured. A compile may
    take `deadline_s`; the child may take `memory_limit_bytes` beyond what it holds when it starts. `turn` counts from 0 where a part
    is run several times, each time in a new child."""

    part: str
    tokenizer_path: str
    cases: list[Case]
    warm: list[Case] = []
    redis: RedisAddress | None = None
    secret: bytes = b"benchmark"
    rounds: int = 1
    turn: int = 0
    deadline_s: float = 5.0
    memory_limit_bytes: int = 12 << 30

    def after(self, done: set[str], stuck: str) -> Assignment:
        """What is left to do once a case has ended the child: the measured ones keep its successor warm, the culprit is left out."""
        return msgspec.structs.replace(
            self,
            cases=[case for case in self.cases if case.name not in done and case.name != stuck],
            warm=[case for case in [*self.warm, *(case for case in self.cases if case.name in done)] if case.name != stuck],
        )


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The child has loaded what it needs."""


class Began(msgspec.Struct, frozen=True, tag=True):
    """The child works on this case from now on."""

    case: str


class Measured(msgspec.Struct, frozen=True, tag=True):
    """The case's figures; milliseconds and bytes where the name says so. A `fault` tells why there are none."""

    case: str
    values: Values

    @property
    def fault(self) -> str | None:
        found = self.values.get("fault")
        return None if found is None else str(found)

    def number(self, name: str) -> float | None:
        value = self.values.get(name)
        return float(value) if isinstance(value, int | float) else None


Line = Ready | Began | Measured
