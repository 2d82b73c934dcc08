"""What who makes a call and the router of the same process tell each other of it: what it costs, and where it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from router.turns.shares import Presence


@dataclass(frozen=True, slots=True)
class Routed:
    """Where a call goes, after it has waited for its group and for room. `first_rank` is the replica that its grammar prefers, and so many
    that come before the one it goes to in that grammar's ranks were `passed_over`; empty and none, where it has no grammar."""

    replica: str
    waited_s: float
    first_rank: str = ""
    passed_over: int = 0


class Tenants(Protocol):
    """A router's, for those who know what other routers have."""

    def present(self) -> Mapping[str, Presence]:
        """Those that it has requests of."""
        ...

    def heard(self, elsewhere: Mapping[str, Presence]) -> None:
        """Other routers have requests of these."""
        ...


class Elsewhere(Protocol):
    """Who hears of other ingresses."""

    def meet(self, tenants: Tenants) -> None:
        """From now on, others hear of these tenants, and these of the others'."""
        ...

    def take(self, tenant: str) -> float:
        """What the tenant has used there since this was last taken, in weighted tokens."""
        ...


class Progress:
    """Of one call. It goes with it, but not to other processes, which are given None in its place. `routed` hears where the call goes;
    meanwhile it `waits`, as far as its router tells that."""

    __slots__ = ("_listener", "elsewhere", "routed", "waits")

    def __init__(self, routed: Callable[[Routed], None] | None = None, elsewhere: Elsewhere | None = None) -> None:
        self._listener: Callable[[float], None] | None = None
        self.routed = routed
        self.elsewhere = elsewhere
        self.waits = False

    def listen(self, listener: Callable[[float], None]) -> None:
        """It hears of each further cost."""
        self._listener = listener

    def went(self, where: Routed) -> None:
        """Its router has let it go."""
        self.waits = False
        if self.routed is not None:
            self.routed(where)

    def cost(self, tokens: float) -> None:
        """So many weighted tokens more (`router.turns.shares`)."""
        if self._listener is not None:
            self._listener(tokens)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()
