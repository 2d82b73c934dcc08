"""How loaded every replica is, as far as one router can know: what replicas report, and what the router itself has sent since."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from router.fleet import Fleet, Floats
from router.pace import PrefillPace
from router.parameters import Parameters

SLOWEST = 4.0
VIEW_S, PICTURE_S = 0.1, 0.005
"""How long what is worked out from reports, and from backlogs that shrink, is good for."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a replica says of itself; `taken_at` is its wall clock, in seconds. `step_ms` is the mean time of an engine step since the
    last report, of which `mask_ms` went into masks; 0: there was none. `resident_keys` counts the grammars that its engine holds. A step
    computes at most `step_tokens`; 0: it does not say."""

    replica: str
    taken_at: float
    running: int
    waiting: int
    outstanding_prefill_tokens: int
    resident_keys: int = 0
    mask_ms: float = 0.0
    step_ms: float = 0.0
    step_tokens: int = 0


@dataclass(slots=True)
class _Sent:
    replica: str
    at: float
    tokens: int


@dataclass(slots=True)
class _Moved:
    """A request of ours came (+1) or went (-1) at `at`; it was sent at `sent_at`. `tokens` came or went with it."""

    at: float
    requests: int
    tokens: float
    sent_at: float


@dataclass(slots=True)
class _Columns:
    """What is known of each replica, by position. Of its last report: when it was `taken_at`, its prefill `backlog`, the requests of
    others (`others_then`) and of ours (`own_then`) that were there; `others` is smoothed over several. Of ours: those under way now
    (`own`), and the prefill tokens `sent` since the report, as of `sent_at`."""

    own: Floats
    own_then: Floats
    others: Floats
    others_then: Floats
    backlog: Floats
    taken_at: Floats
    sent: Floats
    sent_at: Floats
    step_ms: Floats

    @classmethod
    def blank(cls, replicas: int) -> _Columns:
        zeros = [np.zeros(replicas) for _ in range(7)]
        own, own_then, others, others_then, backlog, sent, sent_at = zeros
        return cls(own, own_then, others, others_then, backlog, np.full(replicas, -math.inf), sent, sent_at, np.full(replicas, math.nan))

    def taken(self, positions: Sequence[int]) -> _Columns:
        """These, in this order; -1 is one of which nothing is known."""
        fresh = _Columns.blank(1)
        return _Columns(*(np.append(getattr(self, one.name), getattr(fresh, one.name))[list(positions)] for one in fields(self)))


@dataclass(frozen=True, slots=True)
class _View:
    """How far each replica's report is to be trusted, from 0 to 1; the sum of that; and how many requests of others come with one of ours,
    less where ours are so few that they say little."""

    trust: Floats
    trusted: float
    ratio: float


@dataclass(frozen=True, slots=True)
class _Picture:
    """By position, as of `at`; a replica is drawn anew when something comes or goes there. One that tells nothing has as many requests of
    others as is `usual`."""

    requests: Floats
    loads: Floats
    usual: float
    at: float


class LoadBoard:
    """One router's picture. `clock` is wall clock time in seconds: replicas on other machines report by theirs, and a clock that is ahead
    counts as if it were not.

    Of its own requests a router knows at any time which are under way. Of the others' it knows what was left in the last report when its
    own were subtracted, and for the time since it assumes that they come and go as its own do: all routers choose alike, so that
    its own requests are a sample of all. (Reports alone make routers chase each other: all see the same replica idle, and fill it.) A
    replica without a report that counts is taken to have as many of the others' as the average one: silence must not look idle.
    """

    def __init__(self, clock: Callable[[], float], parameters: Parameters | None = None) -> None:
        self._clock = clock
        self._parameters = parameters or Parameters()
        self._pace = PrefillPace(self._parameters.half_life_s)
        self._sent: dict[str, _Sent] = {}
        self._reports: dict[str, LoadReport] = {}
        self._moves: dict[str, deque[_Moved]] = {}
        self._columns = _Columns.blank(0)
        self._slowness: Floats | None = None
        self._view, self._view_at = _View(np.zeros(0), 0.0, 0.0), -math.inf
        self._picture: _Picture | None = None
        self.fleet = Fleet()

    def adopt(self, fleet: Fleet) -> None:
        """From now on the replicas are these; what is known of those that stay is kept, and requests to the others are forgotten."""
        self._columns = self._columns.taken([self.fleet.positions.get(replica, -1) for replica in fleet.ids])
        self._moves = {replica: self._moves.get(replica, deque()) for replica in fleet.ids}
        self._sent = {request: sent for request, sent in self._sent.items() if sent.replica in fleet.positions}
        self._reports = {replica: report for replica, report in self._reports.items() if replica in fleet.positions}
        self.fleet, self._slowness, self._view_at, self._picture = fleet, None, -math.inf, None

    def report(self, replica: str) -> LoadReport | None:
        """The last one that counted."""
        return self._reports.get(replica)

    def reported(self, report: LoadReport) -> bool:
        """Reports of strangers, and those that are stale or older than the last one, change nothing: False."""
        at, now, known = self.fleet.positions.get(report.replica), self._clock(), self._columns
        taken = min(report.taken_at, now)
        if at is None or now - taken >= self._parameters.stale_s or taken <= known.taken_at[at]:
            return False
        since = [move for move in self._moves[report.replica] if move.at > taken]
        self._learn_pace(at, report, taken)
        own_then = known.own[at] - sum(move.requests for move in since)
        expected = max(0.0, known.others[at] + (own_then - known.own_then[at]) * self._view.ratio)
        known_at = float(known.taken_at[at])
        keeps = math.exp((known_at - taken) / self._parameters.smooth_s)
        reported = max(0.0, report.running + report.waiting - own_then)
        known.others[at], known.others_then[at] = expected * keeps + reported * (1 - keeps), reported
        known.own_then[at], known.taken_at[at] = own_then, taken
        known.backlog[at] = report.outstanding_prefill_tokens
        known.sent[at] = sum(move.tokens * self._left(now - move.at) for move in since if move.sent_at > taken)
        known.sent_at[at] = now
        self._view_at, self._picture = -math.inf, None
        self._learn_step(at, report.step_ms, math.exp((known_at - taken) / self._parameters.steps_smooth_s))
        self._reports[report.replica] = report
        return True

    def routed(self, request: str, replica: str, prefill_tokens: int) -> None:
        """A request was sent; one that was under way elsewhere counts there no more."""
        self.completed(request)
        at, now = self.fleet.positions.get(replica), self._clock()
        if at is not None:
            self._sent[request] = _Sent(replica, now, prefill_tokens)
            self._move(at, _Moved(now, 1, prefill_tokens, now))

    def completed(self, request: str) -> str | None:
        """A request has ended, in whatever way, at this replica; unknown ones change nothing."""
        sent = self._sent.pop(request, None)
        if sent is None:
            return None
        at, now = self.fleet.positions[sent.replica], self._clock()
        # Tokens that a report has seen were counted, or not, by the replica itself.
        left = 0.0 if sent.at <= self._columns.taken_at[at] else sent.tokens * self._left(now - sent.at)
        self._move(at, _Moved(now, -1, -left, sent.at))
        return sent.replica

    def loads(self) -> Floats:
        """In requests, by position in the fleet; good until something happens. A replica whose steps take much longer than usual counts as
        loaded by as much more; less than `slow` times as long is what a fuller batch takes."""
        return self._pictured().loads

    def requests(self) -> Floats:
        """Ours and those of others, under way and waiting, by position in the fleet; good until something happens."""
        return self._pictured().requests

    def taken(self, replica: str) -> float:
        """Seats there: those of our requests, and those that others had in the last report. They are not thought to come and go as ours do,
        as for loads: a router with few requests would take one of its own for many of theirs. 0 for strangers."""
        at, known = self.fleet.positions.get(replica), self._columns
        return 0.0 if at is None else float(known.own[at] + known.others_then[at] * self._viewed(self._clock()).trust[at])

    def backlog(self, replica: str) -> float:
        """Prefill tokens that are thought to be outstanding there; 0 for strangers."""
        at, now, known = self.fleet.positions.get(replica), self._clock(), self._columns
        if at is None:
            return 0.0
        reported = float(known.backlog[at]) * self._left(now - float(known.taken_at[at]))
        sent = float(known.sent[at]) * self._left(now - float(known.sent_at[at]))
        return reported + sent * (1 + self._viewed(now).ratio)

    def share(self) -> float:
        """Which part of all traffic is ours, as far as reports tell: 1 without any."""
        return 1 / (1 + self._viewed(self._clock()).ratio)

    def _viewed(self, now: float) -> _View:
        """As of the last report, or of a moment ago: it is asked for with every request."""
        if not 0 <= now - self._view_at < VIEW_S:
            known, numbers = self._columns, self._parameters
            trust = np.clip((known.taken_at + (numbers.stale_s - now)) / (numbers.stale_s - numbers.fresh_s), 0.0, 1.0)
            trusted = float(trust.sum())
            ratio = numbers.extrapolates * float(trust @ known.others) / (float(trust @ known.own_then) + trusted) if trusted else 0.0
            self._view, self._view_at = _View(trust, trusted, ratio), now
        return self._view

    def _pictured(self) -> _Picture:
        now = self._clock()
        if self._picture is None or not 0 <= now - self._picture.at < PICTURE_S:
            known, view, replicas = self._columns, self._viewed(now), len(self.fleet)
            others = _others(np.maximum, known.own, known.own_then, known.others, view.ratio)
            usual = float(view.trust @ others) / view.trusted if view.trusted else 0.0
            self._picture = _Picture(np.empty(replicas), np.empty(replicas), usual, now)
            picture = self._picture
            picture.requests[:], picture.loads[:] = self._drawn(picture, np.exp2, np.maximum, self._drawing())
        return self._picture

    def _drawing(self) -> tuple[Floats, ...]:
        known = self._columns
        reported = known.own_then, known.others, known.backlog, known.taken_at
        return known.own, *reported, known.sent, known.sent_at, self._view.trust, self._slow()

    def _drawn(self, picture: _Picture, exp2: Callable[[Any], Any], maximum: Callable[[float, Any], Any], columns: Iterable[Any]) -> Any:
        """Requests and loads, of all replicas or of one: in numbers of its own, one takes a third of the time."""
        own, own_then, others, backlog, taken_at, sent, sent_at, trust, slow = columns
        ratio, half_life_s = self._view.ratio, self._pace.half_life_s
        requests = own + trust * _others(maximum, own, own_then, others, ratio) + (1 - trust) * picture.usual
        left = backlog * exp2(-maximum(0.0, picture.at - taken_at) / half_life_s)
        left += sent * exp2(-maximum(0.0, picture.at - sent_at) / half_life_s) * (1 + ratio)
        return requests, (requests + left / self._parameters.tokens_per_request) * slow

    def _left(self, seconds: float) -> float:
        """The share of a prefill backlog that is not yet worked off."""
        return math.exp2(-max(0.0, seconds) / self._pace.half_life_s)

    def _move(self, at: int, move: _Moved) -> None:
        known = self._columns
        known.own[at] += move.requests
        known.sent[at] = max(0.0, known.sent[at] * self._left(move.at - known.sent_at[at]) + move.tokens)
        known.sent_at[at] = move.at
        if (picture := self._picture) is not None:
            columns = (column.item(at) for column in self._drawing())
            picture.requests[at], picture.loads[at] = self._drawn(picture, math.exp2, max, columns)
        moves = self._moves[self.fleet.ids[at]]
        moves.append(move)
        # Only a report that is older than these could ask for them, and such a one does not count.
        while moves and moves[0].at < max(move.at - self._parameters.stale_s, float(known.taken_at[at])):
            moves.popleft()

    def _learn_pace(self, at: int, report: LoadReport, taken: float) -> None:
        known = self._columns
        sent = sum(move.tokens for move in self._moves[report.replica] if known.taken_at[at] < move.at <= taken and move.requests > 0)
        seconds = taken - float(known.taken_at[at])
        if seconds < math.inf and self._parameters.learns_pace:
            self._pace.observed(float(known.backlog[at]), sent * (1 + self._view.ratio), seconds, report.outstanding_prefill_tokens)

    def _learn_step(self, at: int, step_ms: float, keeps: float) -> None:
        if step_ms > 0:
            known = self._columns.step_ms[at]
            self._columns.step_ms[at] = step_ms if math.isnan(known) else known * keeps + step_ms * (1 - keeps)
            self._slowness = None

    def _slow(self) -> Floats:
        if self._slowness is None:
            steps = self._columns.step_ms
            usual = float(np.nanmedian(steps)) if np.isfinite(steps).any() else math.nan
            slowness = np.nan_to_num(steps / usual, nan=1.0)
            self._slowness = np.where(slowness < self._parameters.slow, 1.0, np.minimum(slowness, SLOWEST))
        return self._slowness


def _others(maximum: Callable[[float, Any], Any], own: Any, own_then: Any, others: Any, ratio: float) -> Any:
    """Requests of others now, if they have come and gone as ours."""
    return maximum(0.0, others + (own - own_then) * ratio)
