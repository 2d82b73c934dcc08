"""Requests that are scheduled at random, with forced tokens here and there, for a worker of vLLM's: whatever becomes of them, each forward
must be given the tokens that stand at its places in the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from model_service.jump_forward.forced import ForcedTokens

PLACES, ROWS, BUDGET, VOCABULARY = 96, 4, 24, 500
Given = dict[str, tuple[list[int], list[int]]]
"""By request: the tokens and the places of a forward."""


@dataclass
class PlayedRequest:
    """As a scheduler knows it: all tokens so far, how many of them have been computed, and what its worker has not been told. It is known
    from its first step on, and runs unless it was preempted after it. `length`: where it ends; `given`: what token a forward was given at
    each place."""

    name: str
    tokens: list[int]
    length: int
    prompt: int
    is_penalized: bool
    computed: int = 0
    is_known: bool = False
    is_running: bool = False
    unsent: ForcedTokens | None = None
    given: dict[int, int] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return len(self.tokens) >= self.length


class PlayedWorker(Protocol):
    def step(self, batch: Sequence[PlayedRequest], lengths: Mapping[str, int], sampled: Sequence[int]) -> tuple[Given, list[int]]:
        """What the forward of so many tokens of each request is given, and how many tokens each samples: those in `sampled`, or none."""

    def check(self, request: PlayedRequest) -> None:
        """That the worker has all of its tokens."""

    def ended(self, request: PlayedRequest) -> None: ...

    def preempted(self, request: PlayedRequest) -> None: ...


class Play:
    """`forced`: how many tokens were, so far."""

    def __init__(self, worker: PlayedWorker, chance: Random, prefix: str = "") -> None:
        self._worker = worker
        self._chance = chance
        self.requests = list(self._made(prefix))
        self.forced = 0

    def run(self) -> None:
        while waiting := [request for request in self.requests if not request.is_over]:
            self._preempt([request for request in waiting if request.is_running])
            if lengths := self._chosen(waiting):
                self._step([request for request in waiting if request.name in lengths], lengths)
        for request in self.requests:
            assert request.given == dict(enumerate(request.tokens[: request.computed])), request.name

    def _made(self, prefix: str) -> Iterator[PlayedRequest]:
        for number in range(ROWS + 2):
            prompt = self._words(1, 30)
            length = len(prompt) + self._chance.randint(2, 40)
            yield PlayedRequest(f"{prefix}{number}", prompt, length, len(prompt), is_penalized=self._happens(50))

    def _happens(self, percent: int) -> bool:
        return self._chance.randrange(100) < percent

    def _words(self, least: int, most: int) -> list[int]:
        return [self._chance.randrange(VOCABULARY) for _ in range(self._chance.randint(least, most))]

    def _preempt(self, running: list[PlayedRequest]) -> None:
        for request in running:
            if self._happens(5):
                self._worker.preempted(request)
                request.is_running, request.computed = False, 0
                request.given.clear()

    def _chosen(self, waiting: list[PlayedRequest]) -> dict[str, int]:
        """How many tokens of whom are computed."""
        seats, budget, lengths = ROWS - sum(request.is_running for request in waiting), BUDGET, {}
        for request in waiting:
            most = min(len(request.tokens) - request.computed, budget)
            if not most or self._happens(30) or not (request.is_running or seats):
                continue
            seats -= not request.is_running
            lengths[request.name] = self._chance.choice([most, self._chance.randint(1, most)])
            budget -= lengths[request.name]
        return lengths

    def _step(self, batch: list[PlayedRequest], lengths: dict[str, int]) -> None:
        sampled = self._words(len(batch), len(batch))
        given, counts = self._worker.step(batch, lengths, sampled)
        for request, token, count in zip(batch, sampled, counts, strict=True):
            words, places = given[request.name]
            request.given.update(zip(places, words, strict=True))
            request.is_known, request.is_running, request.unsent = True, True, None
            request.computed += lengths[request.name]
            assert count == (request.computed == len(request.tokens)), request.name
            if count:
                request.tokens.append(token)
            self._worker.check(request)
            if count:
                self._force(request)
            if request.is_over:
                self._worker.ended(request)
                request.is_running = False

    def _force(self, request: PlayedRequest) -> None:
        if not request.is_over and self._happens(50):
            forced = self._words(1, 12)
            request.unsent = ForcedTokens(len(request.tokens) - request.prompt, tuple(forced))
            request.tokens += forced
            self.forced += len(forced)
