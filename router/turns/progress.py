"""How who reads an answer tells the router of the same process what the call costs."""

from __future__ import annotations

from collections.abc import Callable


class Progress:
    """Of one call. It goes with it, but not to other processes, which are given None in its place."""

    __slots__ = ("_listener",)

    def __init__(self) -> None:
        self._listener: Callable[[float], None] | None = None

    def listen(self, listener: Callable[[float], None]) -> None:
        """It hears of each further cost."""
        self._listener = listener

    def cost(self, tokens: float) -> None:
        """So many weighted tokens more (`router.turns.shares`)."""
        if self._listener is not None:
            self._listener(tokens)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()
