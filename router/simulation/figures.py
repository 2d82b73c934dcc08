"""From what happened to what is compared; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from router.simulation.world import Outcome, Scenario


@dataclass(frozen=True, slots=True)
class Figures:
    """One policy in one scenario. Waits from arrival to first token, latency to the last one; imbalance is the most loaded replica's
    requests over the mean, on average over time; grammars resident on a replica, and distinct mask rows in a decoding step, on
    average; `together` keyed requests admitted for each grammar that was admitted in a step; grammars compiled and fetched in all;
    requests that were sent again because their replica had failed, and those that were never answered; the share of prompts whose
    beginning was in its replica's prefix cache."""

    scenario: str
    policy: str
    replicas: int
    requests: int
    answers_per_s: float
    wait_p50_ms: float
    wait_p99_ms: float
    latency_p99_ms: float
    imbalance: float
    resident: float
    rows_per_step: float
    together: float
    compiled: int
    fetched: int
    sent_again: int
    lost: int
    prefix_hits: float = 0.0
    wait_max_ms: float = 0.0

    @classmethod
    def of(cls, scenario: Scenario, policy: str, outcome: Outcome) -> Figures:
        """Answers a second are those that were complete when the last request arrived."""
        counts = outcome.counts
        return cls(
            scenario.name,
            policy,
            scenario.replicas,
            len(scenario.requests),
            round(_per(outcome.answered_in_time, outcome.last_s), 1),
            _ms(outcome.waits_s, 0.5),
            _ms(outcome.waits_s, 0.99),
            _ms(outcome.latencies_s, 0.99),
            round(_per(sum(outcome.imbalance), len(outcome.imbalance)), 3),
            round(_per(sum(outcome.resident), len(outcome.resident)), 2),
            round(_per(sum(one.rows for one in counts), sum(one.decode_steps for one in counts)), 2),
            round(_per(sum(one.admitted for one in counts), sum(one.admitted_groups for one in counts)), 3),
            outcome.compiled,
            outcome.fetched,
            outcome.sent_again,
            outcome.lost,
            round(_per(sum(one.prefix_hits for one in counts), sum(one.prefixed for one in counts)), 3),
            _ms(outcome.waits_s, 1.0),
        )

    @property
    def loads(self) -> int:
        """How often an engine had to load a grammar."""
        return self.compiled + self.fetched

    def row(self) -> Mapping[str, str | int | float]:
        return {name: getattr(self, name) for name in self.__slots__}


def _per(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _ms(seconds: Sequence[float], share: float) -> float:
    return round(float(np.quantile(seconds, share)) * 1000, 2) if seconds else 0.0
