"""Rewards as an operator may write them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence


class Odd:
    """Scores texts by their length times `worth`; some texts it does not take well."""

    def __init__(self, worth: float) -> None:
        self._worth = worth

    def score(self, texts: Sequence[str]) -> list[float]:
        if "hang" in texts:
            time.sleep(3600)
        if "raise" in texts:
            raise ValueError("not this one")
        if "batch" in texts:
            return [float(len(texts))] * len(texts)
        if "process" in texts:
            return [float(os.getpid())] * len(texts)
        return [self._worth * len(text) for text in texts]
