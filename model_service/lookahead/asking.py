"""Questions as generators, which yield them and return what was answered, checked."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import TypeAlias, TypeVar

from model_service.errors import InvalidScore, OutOfTurn
from model_service.lookahead.instructions import (
    Ahead,
    Answer,
    Draft,
    Drafted,
    Instruction,
    Model,
    Question,
    Roll,
    Rolled,
    Row,
    Score,
    Scored,
    Tokens,
    Verified,
    Verify,
)
from model_service.lookahead.parameters import Stop

T = TypeVar("T")
A = TypeVar("A")
Asking: TypeAlias = Generator[Instruction, Answer | None, T]
"""Yields instructions, is sent the answers to those that are questions, and returns what they came to."""


def _asked(question: Question, kind: type[A]) -> Asking[A]:
    answer = yield question
    if not isinstance(answer, kind):
        raise OutOfTurn(f"{type(answer).__name__} is no answer to {type(question).__name__}")
    return answer


def verify(said: Tokens, drafts: Tokens, *, whole: bool = False) -> Asking[tuple[Row, ...]]:
    """`whole`: every row is needed, also behind a draft that is not the target's own choice."""
    answer = yield from _asked(Verify(said, drafts), Verified)
    rows = answer.rows
    missing = len(drafts) + 1 - len(rows)
    may_miss = bool(rows) and missing > 0 and not whole
    if not all(row.top for row in rows) or (missing and not (may_miss and rows[-1].top[0] != drafts[len(rows) - 1])):
        raise OutOfTurn(f"{len(rows)} rows, or empty ones, for {len(drafts)} drafts")
    return rows


def draft(said: Tokens, length: int, stop: Stop) -> Asking[Ahead]:
    answer = yield from _asked(Draft(said, length), Drafted)
    return _checked(answer.ahead, length, stop)


def roll(model: Model, texts: Sequence[Tokens], lengths: Sequence[int], held: Sequence[Ahead], stop: Stop) -> Asking[list[Ahead]]:
    """The look-ahead of each text, of which `held` is known: only what is missing is asked for, and nothing if nothing is."""
    known = [ahead.first(length) for ahead, length in zip(held, lengths, strict=True)]
    missing = [0 if stop.ended(text + have.tokens) else n - len(have) for text, have, n in zip(texts, known, lengths, strict=True)]
    asked = [number for number, count in enumerate(missing) if count]
    if not asked:
        return known
    wanted = tuple(missing[number] for number in asked)
    answer = yield from _asked(Roll(model, tuple(texts[number] + known[number].tokens for number in asked), wanted), Rolled)
    if len(answer.aheads) != len(asked):
        raise OutOfTurn(f"{len(asked)} texts have {len(answer.aheads)} look-aheads")
    for number, ahead, length in zip(asked, answer.aheads, wanted, strict=True):
        known[number] = known[number].and_then(_checked(ahead, length, stop))
    return known


def score(texts: Sequence[Tokens]) -> Asking[tuple[float, ...]]:
    answer = yield from _asked(Score(tuple(texts)), Scored)
    if len(answer.rewards) != len(texts):
        raise OutOfTurn(f"{len(texts)} texts have {len(answer.rewards)} rewards")
    if not all(map(math.isfinite, answer.rewards)):
        raise InvalidScore(f"the reward gave {', '.join(map(str, answer.rewards))}")
    return answer.rewards


def _checked(ahead: Ahead, length: int, stop: Stop) -> Ahead:
    whole = len(ahead) == length or (0 < len(ahead) < length and stop.ended(ahead.tokens))
    told = {len(ahead.log_probabilities), len(ahead.forced)} <= {0, len(ahead)}
    if not whole or not told or any(token in stop.ends for token in ahead.tokens[:-1]):
        raise OutOfTurn(f"{len(ahead)} tokens are no look-ahead of {length}")
    return ahead
