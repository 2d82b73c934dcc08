"""What an engine core tells of an output beside what vLLM does.

It stands in the field of an output's number of NaNs among the logits: below 0, that is a set of marks, negated.
"""

from __future__ import annotations

from enum import IntFlag


class Mark(IntFlag):
    """FORCED: the grammar has decided the output's tokens, and the model was not asked. NOT_CANONICAL: the answer was to keep to the
    tokenizer's own tokens, and does not. CLOSED: the tokens end an answer that would have become too long."""

    FORCED = 1
    NOT_CANONICAL = 2
    CLOSED = 4


def marked(number: int, mark: Mark) -> int:
    """The field's next value."""
    return -(marks(number) | mark)


def marks(number: int) -> Mark:
    """Of a field."""
    return Mark(max(0, -number))
