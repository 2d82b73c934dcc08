"""What the service counted meanwhile, from its metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families

from deployments.reporting.quantiles import ratio

LOOK_S, STEADY_S, PATIENCE_S = 1.0, 11.0, 60.0
"""Processes tell their agents every ten seconds."""
TIERS = {
    "engine's memory": ("model", "memory_hits"),
    "compiler's memory": ("compiler", "memory_hits"),
    "Redis": ("compiler", "redis_hits"),
    "compiled": ("compiler", "compiled"),
}
"""Where grammars were found: component and event of `maskcast_grammar_events`."""
_EVENTS = "maskcast_grammar_events_total"
_FORCED, _GENERATED = "maskcast_forced_tokens_total", "vllm_generation_tokens_total"
_ROWS, _STEPS = "maskcast_engine_mask_rows_total", "maskcast_engine_masked_steps_total"
Page = Mapping[str, float]
"""Counters of all processes together; those of grammars by component and event."""


@dataclass(frozen=True, slots=True)
class Counted:
    """`forced`: of the answers' tokens; `batch`: requests with a grammar in a step, on average; None where there were none."""

    tiers: Mapping[str, float]
    forced: float | None
    batch: float | None

    @classmethod
    def between(cls, before: Page, after: Page) -> Counted:
        def added(name: str) -> float:
            return after.get(name, 0.0) - before.get(name, 0.0)

        tiers = {tier: added(_event(*which)) for tier, which in TIERS.items()}
        return cls(tiers, ratio(added(_FORCED), added(_GENERATED)), ratio(added(_ROWS), added(_STEPS)))


def read_page(text: str) -> Page:
    found = dict[str, float]()
    for name, value in _samples(text):
        found[name] = found.get(name, 0.0) + value
    return found


def settled_page(url: str, key: str) -> Page:
    """When it tells the same for a while, or does not for long: then there is traffic of others."""
    give_up = time.monotonic() + PATIENCE_S
    last, since = dict[str, float](), time.monotonic()
    while time.monotonic() < give_up and time.monotonic() - since < STEADY_S:
        answer = httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {key}"}, timeout=30, trust_env=False)
        page = {name: value for name, value in read_page(answer.raise_for_status().text).items() if name in _WANTED}
        if page != last:
            last, since = page, time.monotonic()
        time.sleep(LOOK_S)
    return last


def _samples(text: str) -> Iterator[tuple[str, float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            is_event = sample.name == _EVENTS
            yield _event(sample.labels["component"], sample.labels["event"]) if is_event else sample.name, sample.value


def _event(component: str, event: str) -> str:
    return f"{component} {event}"


_WANTED = {_FORCED, _GENERATED, _ROWS, _STEPS, *(_event(*which) for which in TIERS.values())}
