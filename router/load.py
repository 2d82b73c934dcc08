"""How loaded all replicas are, as far as one router can know."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from router.fleet import Fleet, Floats
from router.parameters import Parameters
from router.replica_load import LoadReport, ReplicaLoad, Sent


@dataclass(frozen=True, slots=True)
class Loads:
    """By position in the fleet: `requests` under way, which take seats, those that wait for each replica, and its `load`, in requests."""

    fleet: Fleet
    requests: Floats
    load: Floats
    waiting: Floats


class LoadBoard:
    """One router's picture. `clock` is wall clock time in seconds: replicas on other machines report by theirs, and a clock that is ahead
    counts as if it were not.

    Of its own requests a router knows at any time which are under way. Of the others' it knows what was left in the last report when its
    own were subtracted, and for the time since it assumes that they come and go as its own do: all routers choose alike, so that its own
    requests are a sample of all. (Reports alone make routers chase each other: all see the same replica idle, and fill it.)
    """

    def __init__(self, clock: Callable[[], float], parameters: Parameters) -> None:
        self._clock = clock
        self._parameters = parameters
        self._sent: dict[str, Sent] = {}
        self._replicas: dict[str, ReplicaLoad] = {}
        self._ratio = self._usual = 0.0
        self._usual_step_ms = 0.0
        self._loads: Loads | None = None
        self.fleet = Fleet()

    def adopt(self, fleet: Fleet) -> None:
        """From now on the replicas are these; what is known of those that stay is kept, and requests to the others are forgotten."""
        self._replicas = {replica: self._replicas.get(replica) or ReplicaLoad(self._parameters.steps_smooth_s) for replica in fleet.ids}
        self._sent = {request: sent for request, sent in self._sent.items() if sent.replica in fleet.positions}
        self.fleet, self._loads = fleet, None

    def reported(self, report: LoadReport) -> bool:
        """Reports of strangers, and those that are stale or older than the last one, change nothing: False."""
        replica, now = self._replicas.get(report.replica), self._clock()
        taken_at = min(report.taken_at, now)
        if replica is None or now - taken_at >= self._parameters.stale_s:
            return False
        if replica.taken_at is not None and replica.taken_at > now:
            # Our clock was set back, and what moved by then is in the future.
            replica.forget(math.inf)
        elif replica.taken_at is not None and taken_at <= replica.taken_at:
            return False
        replica.reported(report, taken_at)
        self._loads = None
        return True

    def routed(self, request: str, replica: str, prefill_tokens: int, sequences: int = 1) -> None:
        """A request was sent, and counts as many times as it has sequences; one that was under way elsewhere counts there no more."""
        self.completed(request)
        if replica in self._replicas:
            sent = self._sent[request] = Sent(replica, self._clock(), prefill_tokens, sequences)
            self._replicas[replica].came(sent)
            self._moved(replica)

    def completed(self, request: str) -> str | None:
        """A request has ended, in whatever way, at this replica; unknown ones change nothing."""
        if (sent := self._sent.pop(request, None)) is None:
            return None
        self._replicas[sent.replica].went(sent, self._clock())
        self._moved(sent.replica)
        return sent.replica

    def loads(self, waiting: Mapping[str, int]) -> Loads:
        """As of now; so many requests of ours, by replica, are `waiting`, and others' in proportion. Good until something happens."""
        if self._loads is None:
            self._loads = self._drawn()
        loads, share = self._loads, self.share()
        loads.waiting[:] = 0.0
        for replica, requests in waiting.items():
            if (at := self.fleet.positions.get(replica)) is not None:
                loads.waiting[at] = requests / share
        return loads

    def taken(self, replica: str) -> float:
        """Seats there: those of our requests, and those that others had in the last report. They are not thought to come and go as ours do,
        as for loads: a router with few requests would take one of its own for many of theirs. 0 for strangers."""
        known = self._replicas.get(replica)
        return known.own + known.others if known else 0.0

    def share(self) -> float:
        """Which part of all traffic is ours, as far as reports tell: 1 without any."""
        if self._loads is None:
            self._loads = self._drawn()
        return 1 / (1 + self._ratio)

    def _drawn(self) -> Loads:
        reported = [replica for replica in self._replicas.values() if replica.taken_at is not None]
        others = sum(replica.others for replica in reported)
        # Where ours are few they say little: as if one more were there on each.
        self._ratio = others / (sum(replica.own_then for replica in reported) + len(reported)) if reported else 0.0
        self._usual = others / len(reported) if reported else 0.0
        steps = [replica.step_ms for replica in reported if replica.step_ms]
        self._usual_step_ms = statistics.median(steps) if steps else 0.0
        drawn = [self._one(replica) for replica in self._replicas.values()]
        requests, load = np.array(drawn, dtype=np.float64).reshape(-1, 2).T.copy()
        return Loads(self.fleet, requests, load, np.zeros(len(drawn)))

    def _one(self, replica: ReplicaLoad) -> tuple[float, float]:
        """Requests there, and its load."""
        requests = replica.requests(self._ratio, self._usual)
        return requests, (requests + replica.prefill_tokens(self._ratio) / self._parameters.tokens_per_request) * self._slowness(replica)

    def _slowness(self, replica: ReplicaLoad) -> float:
        if not replica.step_ms or replica.step_ms < self._parameters.slow * self._usual_step_ms:
            return 1.0
        return replica.step_ms / self._usual_step_ms

    def _moved(self, name: str) -> None:
        replica = self._replicas[name]
        replica.forget(self._clock() - self._parameters.stale_s)
        if self._loads is not None:
            at = self.fleet.positions[name]
            self._loads.requests[at], self._loads.load[at] = self._one(replica)
