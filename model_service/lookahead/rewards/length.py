"""How well a text keeps to a length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal


class Length:
    """`most` None: there is no most."""

    def __init__(self, least: int, most: int | None, unit: Literal["words", "characters"]) -> None:
        self._least = least
        self._most = most
        self._unit = unit

    def score(self, texts: Sequence[str]) -> list[float]:
        """1 within the bounds; under them the share of `least` that is there, over them the share of the text that may be."""
        return [self._fit(len(text.split()) if self._unit == "words" else len(text)) for text in texts]

    def _fit(self, length: int) -> float:
        if length < self._least:
            return length / self._least
        return 1.0 if self._most is None or length <= self._most else self._most / length
