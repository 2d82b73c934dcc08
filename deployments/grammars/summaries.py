"""What is told of named grammars: worked out once for each constraint, and remembered without it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from grammar_service.errors import GrammarError
from grammar_service.resolve import Resolution
from grammar_service.spec import GrammarSpec
from grammar_service.warning import ConstraintWarning

REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Summary:
    """A grammar's key, the backend that enforces it, and what there is to be said of its text."""

    key: str
    backend: str
    warnings: tuple[ConstraintWarning, ...]

    @classmethod
    def of(cls, resolution: Resolution) -> Summary:
        return cls(resolution.key, resolution.backend, resolution.warnings)


class Summaries:
    """`resolve` takes tens of milliseconds of a long constraint, and a list has thousands of them. Within one process, with its limits and
    versions, a constraint always means the same."""

    def __init__(self, resolve: Callable[[GrammarSpec], Awaitable[Resolution]]) -> None:
        self._resolve = resolve
        self._known: OrderedDict[bytes, Summary | None] = OrderedDict()

    async def find(self, spec: GrammarSpec) -> Summary | None:
        """None where limits or versions have changed since it got its name, so that it is enforced no longer. Raises PoolBusy,
        PoolUnavailable, of which nothing is remembered."""
        digest = blake2b(msgspec.msgpack.encode(spec), digest_size=16).digest()
        if digest not in self._known:
            self._known[digest] = await self._resolved(spec)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(digest)
        return self._known[digest]

    async def _resolved(self, spec: GrammarSpec) -> Summary | None:
        try:
            return Summary.of(await self._resolve(spec))
        except GrammarError:
            return None
