"""Carries out what a machine says, with models that answer later."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from model_service.errors import OutOfTurn
from model_service.lookahead.instructions import (
    Ahead,
    Answer,
    Draft,
    Drafted,
    Emit,
    End,
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
from model_service.lookahead.machine import Machine
from model_service.lookahead.parameters import Parameters, Rejection
from model_service.lookahead.trace import Trace


class Language(Protocol):
    """A language model after one prompt. What is asked of it at the same time may be computed together."""

    async def roll(self, texts: Sequence[Tokens], lengths: Sequence[int], *, scored: bool = False) -> tuple[Ahead, ...]:
        """The model's next tokens after each text; `scored`: with their log-probabilities."""


class Target(Language, Protocol):
    async def verify(self, said: Tokens, drafts: Tokens, likeliest: int) -> tuple[Row, ...]:
        """One forward: a row for each draft and one behind the last, each with so many of the likeliest tokens."""


class Judge(Protocol):
    async def score(self, texts: Sequence[Tokens]) -> tuple[float, ...]:
        """The reward of each text. Raises LookaheadError."""


class Driver:
    """Of one text. `draft` None: the machine asks for no drafts; `trace` hears what was tried, None: nobody wants to know."""

    def __init__(
        self,
        machine: Machine,
        parameters: Parameters,
        target: Target,
        draft: Language | None,
        judge: Judge,
        trace: Trace | None = None,
    ) -> None:
        self._machine = machine
        self._likeliest = parameters.k
        self._scored = parameters.rejection is Rejection.SAMPLING
        self._target = target
        self._draft = draft
        self._judge = judge
        self._trace = trace

    async def run(self) -> AsyncGenerator[tuple[Tokens, End | None], None]:
        """Tokens as they are said, and with the last of them the end. Raises LookaheadError, and what the models raise."""
        instructions = self._machine.start()
        while True:
            emits = [emit for emit in instructions if isinstance(emit, Emit)]
            said, last = tuple(token for emit in emits for token in emit.tokens), instructions[-1]
            if self._trace is not None:
                for emit in emits:
                    self._trace.said(emit)
            if isinstance(last, End):
                yield said, last
                return
            if said:
                yield said, None
            assert not isinstance(last, Emit), "a machine says something, and then asks or ends"
            instructions = self._machine.take(await self._answer(last))

    async def _answer(self, question: Question) -> Answer:
        match question:
            case Draft(said, length):
                (ahead,) = await self._language(Model.DRAFT).roll([said], [length], scored=self._scored)
                return Drafted(ahead)
            case Roll(model, texts, lengths):
                # Of the draft's, what comes next may be the next drafts.
                return Rolled(await self._language(model).roll(texts, lengths, scored=self._scored and model is Model.DRAFT))
            case Verify(said, drafts):
                return Verified(await self._target.verify(said, drafts, self._likeliest))
            case Score(texts):
                rewards = await self._judge.score(texts)
                if self._trace is not None and len(rewards) == len(texts):
                    self._trace.tried(texts, rewards)
                return Scored(rewards)

    def _language(self, model: Model) -> Language:
        language = self._target if model is Model.TARGET else self._draft
        if language is None:
            raise OutOfTurn("there is no model to draft with")
        return language
