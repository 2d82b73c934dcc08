"""How loaded one replica is, as far as one router can know: what it has said of itself, and what the router has sent it since."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a replica says of itself; `taken_at` is its wall clock, in seconds. `requests` run or wait there, each sequence one. `step_ms`
    is the mean time of an engine step since the last report; 0: there was none. A step computes at most `step_tokens`; 0: it does not
    say."""

    replica: str
    taken_at: float
    requests: int
    prefill_tokens: int
    step_ms: float = 0.0
    step_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of ours, its prefill `tokens`, when it went to its replica, and how many sequences it takes seats for."""

    replica: str
    at: float
    tokens: int
    sequences: int = 1


@dataclass(frozen=True, slots=True)
class _Moved:
    """A request of ours came (+1) or went (-1)."""

    at: float
    sign: int
    sent: Sent

    @property
    def requests(self) -> int:
        return self.sign * self.sent.sequences


@dataclass(slots=True)
class ReplicaLoad:
    """`own` requests of ours are under way now, each counted as many times as it has sequences; when the last report was taken (`taken_at`,
    by our clock; None: there was none), `own_then` were, and so many of `others`. Prefill tokens: the `backlog` of the report, and those
    that we have `sent` since."""

    steps_smooth_s: float
    own: int = 0
    own_then: int = 0
    others: int = 0
    backlog: int = 0
    sent: int = 0
    step_ms: float = 0.0
    taken_at: float | None = None
    _moves: deque[_Moved] = field(default_factory=deque)

    def came(self, sent: Sent) -> None:
        self._move(_Moved(sent.at, 1, sent))

    def went(self, sent: Sent, now: float) -> None:
        self._move(_Moved(now, -1, sent))

    def reported(self, report: LoadReport, taken_at: float) -> None:
        """`taken_at` is when, by our clock: what has moved since is not in it."""
        self._learn_step(report.step_ms, taken_at)
        self.taken_at = taken_at
        self.forget(taken_at)
        self.own_then = self.own - sum(move.requests for move in self._moves)
        self.others = max(0, report.requests - self.own_then)
        self.backlog = report.prefill_tokens
        self.sent = sum(move.sign * move.sent.tokens for move in self._moves if move.sent.at > taken_at)

    def forget(self, before: float) -> None:
        """What moved by then is of no use: no report is as old."""
        while self._moves and self._moves[0].at <= before:
            self._moves.popleft()

    def requests(self, ratio: float, usual: float) -> float:
        """All that are thought to be there. Of others, `ratio` come and go with one of ours; one that has never reported has as many as is
        `usual`: silence must not look idle."""
        if self.taken_at is None:
            return self.own + usual
        return self.own + max(0.0, self.others + (self.own - self.own_then) * ratio)

    def prefill_tokens(self, ratio: float) -> float:
        """Thought to be outstanding there."""
        return self.backlog + self.sent * (1 + ratio)

    def _learn_step(self, step_ms: float, taken_at: float) -> None:
        if step_ms > 0:
            seconds = max(0.0, taken_at - self.taken_at) if self.taken_at is not None and self.step_ms else math.inf
            self.step_ms += (step_ms - self.step_ms) * -math.expm1(-seconds / self.steps_smooth_s)

    def _move(self, move: _Moved) -> None:
        self.own += move.requests
        self._moves.append(move)
        # The replica itself has counted, or not, what it had when it reported.
        if self.taken_at is None or move.sent.at > self.taken_at:
            self.sent += move.sign * move.sent.tokens
