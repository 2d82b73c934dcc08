"""The policy with one of its heuristics taken out: what does it lose?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from router.parameters import Parameters

WITHOUT: Mapping[str, Mapping[str, Any]] = {
    "bound": {"bound": math.inf},
    "floor": {"floor": 0.0},
    "slack": {"slack": 0.0},
    "popularity": {"room_for_rare": False},
    "prefill": {"tokens_per_request": math.inf},
    "dividing": {"prefill_budget": math.inf},
    "slowness": {"slow": math.inf},
    "smooth steps": {"steps_smooth_s": 1e-3},
    "patience": {"patience_s": math.inf},
    "a longest wait": {"longest_wait_s": math.inf},
    "waiting": {"longest_wait_s": 0.0},
    "hold": {"hold_s": 0.0},
    "asking again": {"retry_s": 5.0},
}
"""By the name of a heuristic, the parameters that take it out."""
SHOWN_ELSEWHERE = frozenset({"a longest wait"})
"""What no promise of the simulation shows: that wait ends when what is thought of room is wrong for ever, which it is not there
(`tests/unit/router/test_grouping.py`)."""


def ablated(parameters: Parameters, names: Iterable[str]) -> Parameters:
    """Raises KeyError: there is no such heuristic."""
    for name in names:
        parameters = replace(parameters, **WITHOUT[name])
    return parameters
