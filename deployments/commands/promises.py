"""What routing by grammar promises in each scenario of the simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from deployments.reporting.quantiles import ratio
from deployments.reporting.report import Target
from router.simulation.figures import Figures
from router.simulation.policies import CONSISTENT, POWER_OF_TWO
from router.simulation.scenarios import ALONE, BATCH, BURST, CALM, CPU, HANG, OVERLOAD, PROMPTS, SLOW


@dataclass(frozen=True, slots=True)
class _Promise:
    """The figure of ours is `at_most` so many times that of the policy `than`, or theirs is at least so many times ours (`fewer`)."""

    name: str
    of: Callable[[Figures], float]
    at_most: float = 0.0
    fewer: float = 0.0
    than: str = POWER_OF_TWO

    def target(self, ours: Figures, theirs: Figures) -> Target:
        name = f"{ours.scenario}: {self.name}"
        if self.fewer:
            return Target.at_least(f"{name}, {self.than} / ours", ratio(self.of(theirs), self.of(ours)), self.fewer, "×")
        return Target.at_most(f"{name}, ours / {self.than}", ratio(self.of(ours), self.of(theirs)), self.at_most, "×")


@dataclass(frozen=True, slots=True)
class _Throughput(_Promise):
    """Ours is at least so many times theirs."""

    def target(self, ours: Figures, theirs: Figures) -> Target:
        return Target.at_least(f"{ours.scenario}: {self.name}, ours / {self.than}", ratio(self.of(ours), self.of(theirs)), self.fewer, "×")


@dataclass(frozen=True, slots=True)
class _Longest(_Promise):
    """Ours is at most so many seconds, whatever theirs is."""

    def target(self, ours: Figures, theirs: Figures) -> Target:
        return Target.at_most(f"{ours.scenario}: {self.name}", self.of(ours), self.at_most, "s")


def _held(fewer: float) -> _Promise:
    return _Promise("grammars on a replica", lambda one: one.resident, fewer=fewer)


def _loads(at_most: float) -> _Promise:
    return _Promise("grammar loads", lambda one: one.loads, at_most)


def _wait(at_most: float) -> _Promise:
    return _Promise("p99 wait", lambda one: one.wait_p99_ms, at_most)


def _latency(at_most: float) -> _Promise:
    return _Promise("p99 latency", lambda one: one.latency_p99_ms, at_most)


_ROWS = _Promise("mask rows in a step", lambda one: one.rows_per_step, 1.0)
_ANSWERS = _Throughput("answers a second", lambda one: one.answers_per_s, fewer=0.97)
_MEDIAN = _Promise("median wait", lambda one: one.wait_p50_ms, 1.0)
_BARE = _Promise("p99 wait", lambda one: one.wait_p99_ms, 0.5, than=CONSISTENT)
_COMMON = (_held(1.5), _loads(0.75), _ROWS, _ANSWERS, _MEDIAN, _BARE)
_BY_SCENARIO: Mapping[str, Sequence[_Promise]] = {
    # One grammar is kept on few replicas, and may wait longer for that.
    BURST: (*_COMMON, _wait(2)),
    BATCH: (*_COMMON, _wait(2)),
    OVERLOAD: (*_COMMON, _wait(1.2)),
    SLOW: (*_COMMON, _wait(1.25), _latency(1.1)),
    PROMPTS: (*_COMMON, _wait(1.25), _Throughput("prompts that meet their prefix", lambda one: one.prefix_hits, fewer=1)),
    # With fewer of its clients caught by the replica that hangs, more is under way in the others; who is caught is not counted.
    HANG: (_held(1.5), _loads(0.75), _ANSWERS, _wait(2), _Promise("requests caught by it", lambda one: one.sent_again, 1)),
    # Too few requests for rows to matter: what is held and loaded counts.
    CALM: (_held(2.5), _loads(0.4), _ANSWERS, _MEDIAN, _wait(1.25)),
    # All other seats are taken, so that its requests wait for it, if not for ever.
    ALONE: (_held(1.5), _loads(0.75), _ANSWERS, _Longest("longest wait", lambda one: one.wait_max_ms / 1000, 15)),
    # What `python -m load_tests.routing` promises of real engines.
    CPU: (
        _held(2.5),
        _loads(0.5),
        _Promise(_ROWS.name, _ROWS.of, fewer=1.5),
        _ANSWERS,
        _latency(1.1),
        _Promise("most loaded replica / mean", lambda one: one.imbalance, 1.3),
    ),
}


def promises(ours: Figures, others: Mapping[str, Figures]) -> Iterator[Target]:
    """Of one scenario; `others` by the name of their policy."""
    for promise in _BY_SCENARIO.get(ours.scenario, (*_COMMON, _wait(1.25))):
        yield promise.target(ours, others[promise.than])
    yield Target.at_most(f"{ours.scenario}: requests that are never answered", float(ours.lost), 0, "")
