"""The thresholds that are tried, and which of them are taken (Nakshatri et al. 2025, section 4, appendix on hyperparameters)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from rich.table import Table

from model_service.lookahead.cost import runtime

FASTEST = 10
"""Of these, the one that satisfies most."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    a_t: float
    r_t: float
    b: int

    def fields(self) -> dict[str, Any]:
        """As a request, or the settings, have them."""
        return asdict(self)


GRID = tuple(Thresholds(*one) for one in product((0.3, 0.6, 0.9), (0.3, 0.5, 0.6, 0.9), (0, 1, 2)))
"""The paper's for CommonGen."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one answer: its reward, its tokens, and the calls of both models."""

    reward: float
    tokens: int
    draft_calls: int
    target_calls: int


@dataclass(frozen=True, slots=True)
class Tried:
    """`satisfied`: the share of answers whose reward is high enough; `reward`: the mean; `p`: what a token costs, in forwards
    of the model. Calls are for a token."""

    thresholds: Thresholds
    satisfied: float
    reward: float
    draft_calls: float
    target_calls: float
    p: float

    @classmethod
    def of(cls, thresholds: Thresholds, outcomes: Sequence[Outcome], enough: float, cost_ratio: float) -> Tried:
        """`cost_ratio`: what a token of the draft costs of one of the model."""
        tokens = sum(one.tokens for one in outcomes)
        draft, target = sum(one.draft_calls for one in outcomes) / tokens, sum(one.target_calls for one in outcomes) / tokens
        rewards = [one.reward for one in outcomes]
        share = sum(reward >= enough for reward in rewards) / len(rewards)
        return cls(thresholds, share, sum(rewards) / len(rewards), draft, target, runtime(cost_ratio, draft, target))


def chosen(tried: Sequence[Tried]) -> Tried:
    """Of the FASTEST, the one that satisfies most; of equals the one with more reward, and then the faster."""
    fastest = sorted(tried, key=lambda one: one.p)[:FASTEST]
    return max(fastest, key=lambda one: (one.satisfied, one.reward, -one.p))


def as_settings(thresholds: Thresholds) -> str:
    """YAML for the service's settings."""
    lines = [f"    {name}: {value}" for name, value in thresholds.fields().items()]
    return "\n".join(["model:", "  lookahead: true", "  lookahead_defaults:", *lines, ""])


def table(tried: Sequence[Tried], taken: Tried) -> Table:
    """Fastest first, for a terminal; what is taken stands out."""
    shown = Table(title="thresholds, fastest first", title_justify="left")
    for heading in ("a_t", "r_t", "b", "satisfied, %", "reward", "draft calls", "target calls", "P"):
        shown.add_column(heading, justify="right")
    for one in sorted(tried, key=lambda one: one.p):
        at, figures = one.thresholds, (one.reward, one.draft_calls, one.target_calls, one.p)
        cells = [f"{at.a_t:g}", f"{at.r_t:g}", str(at.b), f"{100 * one.satisfied:.1f}", *(f"{figure:.2f}" for figure in figures)]
        shown.add_row(*cells, style="bold" if one is taken else None)
    return shown
