"""A reward that fails where texts say so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Event

HANGS, NAN = "it hangs", "no number"


class Faulty:
    def score(self, texts: Sequence[str]) -> list[float]:
        if any(HANGS in text for text in texts):
            Event().wait()
        return [math.nan if NAN in text else 0.0 for text in texts]
