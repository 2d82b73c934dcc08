"""What a grammar leaves no choice about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Segment:
    """`tokens`: forced ids, may be empty. `ends`: after them the text is complete and nothing can follow, so that only stop tokens are
    allowed."""

    tokens: tuple[int, ...]
    ends: bool


NOTHING = Segment((), False)
END = Segment((), True)
