"""What who makes a call and the router of the same process tell each other of it: what it costs, and where it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Routed:
    """Where a call goes, after it has waited for its group and for room. `home` is the replica of its grammar, and so many that come before
    the one it goes to in that grammar's ranks were `passed_over`; empty and none, where it has no grammar."""

    replica: str
    waited_s: float
    home: str = ""
    passed_over: int = 0


class Progress:
    """Of one call. It goes with it, but not to other processes, which are given None in its place. `routed` hears where the call goes.
    `elsewhere` takes what the call's tenant has used at other ingresses since that was last taken, in weighted tokens."""

    __slots__ = ("_listener", "elsewhere", "routed")

    def __init__(self, routed: Callable[[Routed], None] | None = None, elsewhere: Callable[[], float] | None = None) -> None:
        self._listener: Callable[[float], None] | None = None
        self.routed = routed
        self.elsewhere = elsewhere

    def listen(self, listener: Callable[[float], None]) -> None:
        """It hears of each further cost."""
        self._listener = listener

    def cost(self, tokens: float) -> None:
        """So many weighted tokens more (`router.turns.shares`)."""
        if self._listener is not None:
            self._listener(tokens)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()
