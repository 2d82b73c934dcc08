"""Masks of look-aheads where a grammar forces the next token.

An engine that jumps says forced text in one tokenization, the tokenizer's own, where a mask alone leaves several. What is verified must be
what would be said, and a look-ahead the same wherever it begins and ends, also in the middle of what is forced: at such a place the forced
token is the only one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grammar_service.backends import Matcher
from grammar_service.segments import Segment

Rows = NDArray[np.int32]


def force_rows(masks: Rows, find: Callable[[Sequence[int]], Segment], matcher: Matcher, said: Sequence[int], drafts: Sequence[int]) -> None:
    """In place: `masks`, int32 `[d + 1, ceil(V / 32)]`, behind `said`, where the matcher stands, and behind each of the drafts, as far as
    the grammar allows them. `find`: what is forced behind an output. The matcher's state is the same afterwards."""
    taken = 0
    for place, mask in enumerate(masks):
        forced = find([*said, *drafts[:place]]).tokens
        if forced:
            _allow_only(mask, forced[0])
        if place == len(drafts) or drafts[place] < 0 or not matcher.accept(drafts[place]):
            break
        taken += 1
    matcher.rollback(taken)


def _allow_only(mask: NDArray[Any], token: int) -> None:
    bits = mask.view(np.uint32)
    bits[:] = 0
    bits[token // 32] = np.uint32(1 << (token % 32))
