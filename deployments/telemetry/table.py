"""Every metric that is ours: what the docs list, dashboards and alerts go by, and nothing else is exposed.

No label takes its values from requests: keys of grammars, prompts and texts would make a series each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

PREFIX = "maskcast_"
Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Metric:
    """`name` without the endings that a page gives it: `_total` for a counter; `_bucket`, `_sum`, `_count` for a histogram."""

    name: str
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    meaning: str

    @property
    def samples(self) -> tuple[str, ...]:
        """The names of its samples on a page."""
        endings = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
        return tuple(self.name + ending for ending in endings[self.kind])


_ENGINE = ("deployment", "replica")
_ALL = (
    Metric("requests", "counter", "requests", ("endpoint", "status", "tenant"), "answered; 499: the client left before its answer"),
    Metric("request_seconds", "histogram", "s", ("endpoint",), "from the request to its last byte"),
    Metric("answer_checks", "counter", "answers", ("event",), "that were checked in the end; `event`: `checked`, `retried`, `failed`"),
    Metric("grammar_events", "counter", "events", ("component", "event"), "of caches and compiles; `event`: see below"),
    Metric("grammar_seconds", "histogram", "s", ("tier", "backend"), "a compile replica's answers; `tier`: see below"),
    Metric("compile_queue_seconds", "histogram", "s", ("backend",), "until a compile child was free"),
    Metric("compile_seconds", "histogram", "s", ("backend",), "that compiling took"),
    Metric("load_seconds", "histogram", "s", ("backend",), "that an engine takes to load what was compiled, as it was tried there"),
    Metric("forced_tokens", "counter", "tokens", ("deployment",), "of answers that a grammar forced"),
    Metric("forced_segments", "counter", "segments", ("deployment",), "runs of forced tokens, each computed in one forward"),
    Metric("steps_saved", "counter", "forwards", ("deployment",), "that requests did not need, by their forced tokens"),
    Metric("lookahead", "counter", "", ("deployment", "counted"), "what [look-aheads](lookahead.md) came to; `counted` says what"),
    Metric("engine_steps", "counter", "steps", _ENGINE, "that an engine has computed"),
    Metric("engine_step_us", "counter", "µs", _ENGINE, "that they took"),
    Metric("engine_mask_us", "counter", "µs", _ENGINE, "of these that went into masks"),
    Metric("engine_masked_steps", "counter", "steps", _ENGINE, "in which a grammar masked anything"),
    Metric("engine_mask_rows", "counter", "rows", _ENGINE, "of masks in these steps"),
    Metric(
        *("engine_distinct_mask_rows", "counter", "rows", _ENGINE),
        "different ones in each of these steps, added up; none unless `model.count_mask_rows` is set",
    ),
    Metric("engine_preemptions", "counter", "requests", _ENGINE, "that lost their place in the KV cache, and are computed anew"),
    Metric("engine_grammars_loaded", "counter", "grammars", _ENGINE, "that the engine had to load, from tables or by their recipe"),
    Metric("engine_canonical_answers", "counter", "answers", _ENGINE, "that were to be [canonical](canonical-output.md) and have ended"),
    Metric("engine_canonical_fallbacks", "counter", "answers", _ENGINE, "of these that are not"),
    Metric("engine_redraws", "counter", "tokens", _ENGINE, "of such answers that led nowhere, and were drawn anew"),
    Metric("engine_drafts", "counter", "tokens", (*_ENGINE, "source"), "that `model.prompt_lookup` drafted; `source`: see below"),
    Metric("engine_accepted_drafts", "counter", "tokens", (*_ENGINE, "source"), "of these that were the model's own"),
    Metric("engine_restarts", "counter", "engines", _ENGINE, "that ended, and another one took their place"),
    Metric("engine_grammars_resident", "gauge", "grammars", _ENGINE, "that the engine holds"),
    Metric("engine_running", "gauge", "requests", _ENGINE, "that the engine has accepted and not yet finished"),
    Metric("mask_frames", "counter", "frames", ("application",), "steps whose masks a mask broadcaster has published"),
    Metric("mask_rows", "counter", "rows", ("application",), "of masks in them"),
    Metric("mask_late", "counter", "frames", ("application",), "that engines did not get in time, and filled themselves"),
    Metric("mask_frame_bytes", "counter", "B", ("application",), "of the frames"),
    Metric("mask_naive_bytes", "counter", "B", ("application",), "that the same masks would have had as rows"),
    Metric("mask_refused", "counter", "engines", ("application",), "that a mask broadcaster sent away for what they said"),
)
METRICS = {each.name: each for each in (Metric(PREFIX + one.name, one.kind, one.unit, one.labels, one.meaning) for one in _ALL)}
"""By name, in the order of the docs."""
_LINK = {
    "errors": "calls of Redis that failed",
    "timeouts": "calls of Redis that took too long",
    "skipped": "calls of Redis that were not made, because others have just failed",
}
_TIERS = {
    "memory_hits": "artifacts that were found in the memory of the process",
    "redis_hits": "artifacts that were found in Redis",
    "misses": "artifacts that were in neither",
    "corrupt": "artifacts that were not authentic, and were not used",
    **{f"redis_server_{name}": meaning for name, meaning in _LINK.items()},
    "redis_server_hits": "values that Redis had",
    "redis_server_misses": "values that it had not",
    "redis_server_puts": "values that were stored there",
    "redis_server_oversized": "values over `redis.max_value_mib`",
}
EVENTS: dict[str, dict[str, str]] = {
    "compiler": {
        "requests": "that a compile replica was asked",
        "compiled": "artifacts that were made",
        "stopgaps": "answers on a quick backend, while the grammar's own artifact is made",
        "refused": "grammars that are at fault, or enforced by no backend",
        "remembered": "refusals that were found in place of artifacts",
        "timed_out": "compiles that took too long",
        "failed": "compiles that ended with an error, or out of memory",
        "busy": "requests for which there was no room",
        "unavailable": "requests for which there was no compile child",
        "children_replaced": "compile children that were killed, or ended",
        **_TIERS,
    },
    "model": {"pool_calls": "artifacts that a model replica asked the compile pool for", **_TIERS},
    "registry": {
        "compiled_ahead": "named grammars that were compiled before anybody asked",
        "not_compiled_ahead": "named grammars for which that failed",
        "from_memory": "names that were known without Redis",
        "damaged": "entries in Redis that are not ours",
        **_LINK,
    },
}
"""Values of the label `event`, by `component`."""


def samples() -> Iterator[str]:
    """The names of all samples of ours on a page."""
    for metric in METRICS.values():
        yield from metric.samples


def tables() -> str:
    """The docs' tables, in Markdown."""
    metrics = [(f"`{one.name}`", one.kind, one.unit, _spans(one.labels), one.meaning) for one in METRICS.values()]
    events = [(f"`{component}`", f"`{event}`", meaning) for component, those in EVENTS.items() for event, meaning in those.items()]
    return "\n\n".join(
        (
            _markdown(("metric", "type", "unit", "labels", "meaning"), metrics),
            "The tiers of `maskcast_grammar_seconds` are `memory`, `redis`, `compiled`, and `stopgap` for an answer on a quick backend,\n"
            "while the grammar's own artifact is made.",
            "The events of `maskcast_grammar_events`:",
            _markdown(("component", "event", "meaning"), events),
        )
    )


def _spans(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _markdown(heading: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = (heading, ("---",) * len(heading), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
