"""What stands around a library's matcher and takes more away."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from grammar_service.backends.protocol import Matcher

if TYPE_CHECKING:
    import torch


class Layer(ABC):
    """A Matcher that is another one, `inner`, less what `bound` takes from its masks."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    @property
    def inner(self) -> Matcher:
        return self._matcher

    @property
    def is_filled(self) -> bool:
        """Whether its next mask is known, so that `fill` has no need of the other matcher's."""
        return False

    @abstractmethod
    def accept(self, token: int) -> bool:
        """As a Matcher's."""

    @abstractmethod
    def rollback(self, n: int) -> None:
        """As a Matcher's."""

    @abstractmethod
    def bound(self, bitmask: torch.Tensor, row: int) -> None:
        """Make the other matcher's mask ours."""

    @abstractmethod
    def reset(self) -> None:
        """As a Matcher's."""

    @property
    def names_tokens(self) -> bool:
        return self._matcher.names_tokens

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        self._matcher.fill(bitmask, row)
        self.bound(bitmask, row)

    def forced_bytes(self) -> bytes:
        return self._matcher.forced_bytes()

    def is_terminated(self) -> bool:
        return self._matcher.is_terminated()
