"""A matcher with a guard beside it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from grammar_service.backends.protocol import Matcher
from grammar_service.guards.guard import Guard


class Guarded:
    """A Matcher that is another one of JSON texts, less what a guard takes away.

    What the other one forces is forced here as well: the guard only takes away, and never all.
    """

    def __init__(self, matcher: Matcher, guard: Guard) -> None:
        self._matcher = matcher
        self._guard = guard

    @property
    def inner(self) -> Matcher:
        return self._matcher

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

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        self._matcher.fill(bitmask, row)
        self.bound(bitmask, row)

    def bound(self, bitmask: torch.Tensor, row: int) -> None:
        """Make the other matcher's mask ours."""
        if not self._matcher.is_terminated():
            masks: npt.NDArray[np.int32] = bitmask.numpy()
            self._guard.take_away(masks[row])

    def forced_bytes(self) -> bytes:
        return self._matcher.forced_bytes()

    def is_terminated(self) -> bool:
        return self._matcher.is_terminated()

    def reset(self) -> None:
        self._matcher.reset()
        self._guard.reset()
