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
    "leeway": {"leeway": 1.0},
    "deviations": {"deviations": 0.0},
    "popularity": {"hot": math.inf},
    "waiting elsewhere": {"counts_waiting": False},
    "prefix of a spill": {"spill_choices": 0},
    "prefix of a part": {"prefix_divides": False},
    "prefix alone": {"prefix_alone": False},
    "prefill": {"tokens_per_request": math.inf},
    "decay": {"half_life_s": 1e9, "learns_pace": False},
    "pace": {"learns_pace": False},
    "others as ours": {"extrapolates": False},
    "smoothing": {"smooth_s": 1e-9},
    "ageing": {"fresh_s": 44.9},
    "slowness": {"slow": math.inf},
    "smooth steps": {"steps_smooth_s": 1e-9},
    "window": {"window_s": 0.0},
    "queued steps": {"queued_steps": math.inf},
    "hold": {"hold_s": 0.0},
    "patience": {"patience_s": math.inf},
    "silence": {"silent_s": math.inf},
    "hung or not": {"silent_s": -math.inf},
    "seat patience": {"seat_patience_s": math.inf},
    "waiting": {"seat_patience_s": 0.0},
}
"""By the name of a heuristic, the parameters that take it out."""


def ablated(parameters: Parameters, names: Iterable[str]) -> Parameters:
    """Raises KeyError: there is no such heuristic."""
    for name in names:
        parameters = replace(parameters, **WITHOUT[name])
    return parameters
