"""Carries out what machines say, for many texts together, on models in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from model_service.lookahead import Machine
from model_service.lookahead.instructions import (
    Ahead,
    Answer,
    Draft,
    Drafted,
    Emit,
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

Logits = NDArray[np.float32]


class LanguageModel(Protocol):
    def logits(self, texts: Sequence[Tokens], last: Sequence[int]) -> list[Logits]:
        """Float32 [last, V] for each text: after its `last` last positions. What a grammar forbids is -inf."""


@dataclass(slots=True)
class Case:
    """One text: its machine, the prompt that it follows, and what it is worth."""

    prompt: Tokens
    machine: Machine
    reward: Callable[[Tokens], float]
    said: Tokens = ()
    asked: Question | None = None

    def hear(self, instructions: Iterable[Instruction]) -> None:
        self.asked = None
        for instruction in instructions:
            match instruction:
                case Emit(tokens):
                    self.said += tokens
                case Draft() | Verify() | Roll() | Score():
                    self.asked = instruction


@dataclass(frozen=True, slots=True)
class Driver:
    """`ends`: the tokens that end a text; `most`: how many of the likeliest tokens rows have."""

    target: LanguageModel
    draft: LanguageModel
    ends: frozenset[int]
    most: int

    def run(self, cases: Sequence[Case]) -> None:
        """All to their end, what is asked at the same time computed together."""
        for case in cases:
            case.hear(case.machine.start())
        while any(case.asked for case in cases):
            for kind in (Draft, Verify, Roll, Score):
                asking = [case for case in cases if isinstance(case.asked, kind)]
                for case, answer in zip(asking, self._answers(asking), strict=True):
                    case.hear(case.machine.take(answer))

    def _answers(self, asking: Sequence[Case]) -> list[Answer]:
        match asking[0].asked if asking else None:
            case None:
                return []
            case Score():
                return [self._scored(case) for case in asking]
            case Verify():
                return self._verified(asking)
            case Draft() | Roll():
                return self._rolled(asking)

    @staticmethod
    def _scored(case: Case) -> Scored:
        assert isinstance(case.asked, Score)
        return Scored(tuple(case.reward(text) for text in case.asked.texts))

    def _verified(self, asking: Sequence[Case]) -> list[Answer]:
        questions = [(case.prompt, case.asked) for case in asking if isinstance(case.asked, Verify)]
        texts = [prompt + asked.said + asked.drafts for prompt, asked in questions]
        computed = self.target.logits(texts, [len(asked.drafts) + 1 for _, asked in questions])
        return [Verified(self._rows(logits, asked.drafts)) for logits, (_, asked) in zip(computed, questions, strict=True)]

    def _rows(self, logits: Logits, drafts: Tokens) -> tuple[Row, ...]:
        drafted = (*(float(log_softmax(row)[token]) for row, token in zip(logits, drafts, strict=False)), None)
        return tuple(Row(likeliest(row, self.most), of_draft) for row, of_draft in zip(logits, drafted, strict=True))

    def _rolled(self, asking: Sequence[Case]) -> list[Answer]:
        """Drafts and look-aheads of all cases together, one forward of each model a token."""
        wanted: dict[Model, list[tuple[Tokens, int]]] = {Model.TARGET: [], Model.DRAFT: []}
        for case in asking:
            model, texts, lengths = _roll_of(case)
            wanted[model] += [(case.prompt + text, length) for text, length in zip(texts, lengths, strict=True)]
        rolled = {model: iter(self._greedy(model, rolls)) for model, rolls in wanted.items()}
        answers: list[Answer] = []
        for case in asking:
            model, texts, _ = _roll_of(case)
            aheads = tuple(next(rolled[model]) for _ in texts)
            answers.append(Drafted(aheads[0]) if isinstance(case.asked, Draft) else Rolled(aheads))
        return answers

    def _greedy(self, model: Model, rolls: Sequence[tuple[Tokens, int]]) -> list[Ahead]:
        """Where one token is allowed, it is forced: an engine jumps over it."""
        language = self.target if model is Model.TARGET else self.draft
        aheads = [Ahead() for _ in rolls]
        while live := [n for n, (_, length) in enumerate(rolls) if len(aheads[n]) < length and not self._ended(aheads[n])]:
            computed = language.logits([rolls[n][0] + aheads[n].tokens for n in live], [1] * len(live))
            for n, logits in zip(live, computed, strict=True):
                (token,) = likeliest(logits[0], 1)
                forced = (bool(np.isfinite(logits[0]).sum() == 1),)
                aheads[n] = aheads[n].and_then(Ahead((token,), (float(log_softmax(logits[0])[token]),), forced))
        return aheads

    def _ended(self, ahead: Ahead) -> bool:
        return bool(ahead) and ahead.tokens[-1] in self.ends


def likeliest(row: Logits, k: int) -> Tokens:
    """The k likeliest tokens, likeliest first, the lower of equals; fewer where fewer are allowed."""
    near = np.arange(len(row)) if k >= len(row) else np.flatnonzero(row >= np.partition(row, -k)[-k])
    order = near[np.argsort(-row[near], kind="stable")][:k]
    return tuple(int(token) for token in order if np.isfinite(row[token]))


def log_softmax(row: Logits) -> NDArray[np.float64]:
    shifted = row.astype(np.float64) - row.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


def _roll_of(case: Case) -> tuple[Model, tuple[Tokens, ...], tuple[int, ...]]:
    match case.asked:
        case Draft(said, length):
            return Model.DRAFT, (said,), (length,)
        case Roll(model, texts, lengths):
            return model, texts, lengths
    raise AssertionError(case.asked)
