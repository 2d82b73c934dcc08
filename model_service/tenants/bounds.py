"""How much of a step heavy tenants have while light ones are there. Numbers in, numbers out."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from model_service.tenants.step_cost import StepCost

LIGHT = 1 / 8
"""Of the seats: who has no more is light. As many are kept for such tenants (`router/turns/shares.py`)."""
SPARE = 0.3
"""Of the time that a step takes without the heavy: theirs, beside it. By as much a light request waits longer, for the step under way and
for its own."""
LEAST_ROWS = 1 / 16
"""Of their rows that go on: none waits longer than as many steps. With an eighth, and 32 tokens, light clients of the embedded model waited
2.7 times as long as alone for their first token at the median, with these 1.7 times."""
LEAST_TOKENS = 4
"""Of their prompts that are computed in each step: none waits for ever."""
MAX_RESTED_STEPS = 16
"""A heavy prompt under way rests for at most so many steps. vLLM cuts all prompts of a step at one length, so that beside a longer light
prompt it would take more than its part."""
HERE_S = 1.0
"""For so long after its last request a light tenant is still there: a step of prompts that begins between two of its requests lasts a
second and more on a CPU, and the next one would wait for its end."""


@dataclass(frozen=True, slots=True)
class Work:
    """Of a step: rows that go on by a token, and other tokens, of prompts and of forced text."""

    rows: int
    tokens: int


def heavy_tenants(rows: Mapping[str, int], seats: int) -> frozenset[str]:
    """Those that have, or wait for, more rows than is light."""
    most = max(1, math.floor(LIGHT * seats))
    return frozenset(tenant for tenant, number in rows.items() if number > most)


def bounded(light: Work, usual: Work, rows: Sequence[int], prompts: int, cost: StepCost) -> Work:
    """What the heavy may compute in a step beside what the light have in it, who have had `usual` when they were last there: how many of
    their rows, which have so many tokens each to compute, and tokens of their prompts, which have `prompts` left. All where that hardly
    matters; some always."""
    spare = (1 + SPARE) * cost.of(usual.rows, usual.tokens) - cost.of(light.rows, light.tokens)
    rows_ns = [cost.row + cost.token * (tokens - 1) for tokens in rows]
    prompts_ns = cost.token * prompts
    if sum(rows_ns) + prompts_ns <= spare:
        return Work(len(rows), prompts)
    # Each kind has half, and what the other one leaves of it.
    ends_ns = list(accumulate(rows_ns))
    fit = bisect_right(ends_ns, max(spare / 2, spare - prompts_ns))
    running = max(fit, math.ceil(LEAST_ROWS * len(rows)))
    left_ns = spare - (ends_ns[running - 1] if running else 0.0)
    if prompts_ns <= left_ns:
        return Work(running, prompts)
    fitting = math.floor(left_ns / cost.token) if left_ns > 0 else 0  # with nothing left, a token may cost nothing
    return Work(running, min(max(LEAST_TOKENS, fitting), prompts))


def longest_rested(rows: Iterable[str], ran: Mapping[str, int]) -> list[str]:
    """The rows in the order of their turns; `ran` knows the last step that they were in."""
    return sorted(rows, key=lambda row: ran.get(row, 0))
