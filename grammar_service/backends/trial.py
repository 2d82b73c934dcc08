"""Trying tokens on a matcher without keeping them."""

from __future__ import annotations

from collections.abc import Sequence

from grammar_service.backends.protocol import Matcher


def accepted_prefix(matcher: Matcher, tokens: Sequence[int]) -> int:
    """How many of the tokens the matcher would accept one after another; its state is unchanged afterwards."""
    length = 0
    for token in tokens:
        if not matcher.accept(token):
            break
        length += 1
    matcher.rollback(length)
    return length
