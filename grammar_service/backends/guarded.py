"""A matcher with a guard beside it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from grammar_service.backends.layer import Layer
from grammar_service.backends.protocol import Matcher
from grammar_service.guards.guard import Guard


class Guarded(Layer):
    """A Matcher that is another one of JSON texts, less what a guard takes away.

    What the other one forces is forced here as well: the guard only takes away, and never all. Where it leaves but one name, the rest of
    that is forced too.
    """

    def __init__(self, matcher: Matcher, guard: Guard) -> None:
        super().__init__(matcher)
        self._guard = guard

    def accept(self, token: int) -> bool:
        if not self._matcher.accept(token):
            return False
        if self._guard.accept(token):
            return True
        self._matcher.rollback(1)
        return False

    def rollback(self, n: int) -> None:
        self._matcher.rollback(n)
        self._guard.rollback(n)

    def forced_bytes(self) -> bytes:
        forced = self._matcher.forced_bytes()
        return forced + self._guard.forced(forced)

    def bound(self, bitmask: torch.Tensor, row: int) -> None:
        if not self._matcher.is_terminated():
            masks: npt.NDArray[np.int32] = bitmask.numpy()
            self._guard.take_away(masks[row])

    def reset(self) -> None:
        self._matcher.reset()
        self._guard.reset()
