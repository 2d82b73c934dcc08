"""What every reward promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Reward(Protocol):
    def score(self, texts: Sequence[str]) -> list[float]:
        """A finite number for each text, higher for better ones: the answer so far with a look-ahead, without its prompt. The same text
        always has the same one."""
