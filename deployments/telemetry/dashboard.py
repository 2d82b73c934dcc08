"""The Grafana dashboard, of which `k8s/base/dashboard.json` is written: `python -m deployments.telemetry.dashboard`.

Its queries name metrics as they stand on `/metrics`; where Prometheus scrapes Ray's agents, `k8s/base/monitoring.yaml` takes Ray's prefix
off. They hold on both: they sum over whatever labels tell processes apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "k8s" / "base" / "dashboard.json"
WINDOW = "$__rate_interval"
"""Grafana's name for a few scrapes."""
WIDTH, HEIGHT, COLUMNS = 6, 7, 4
"""Of a panel, in the units of Grafana's grid, whose rows have 24."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
UNITS = {"1/s": "ops", "s": "s", "ms": "ms", "B/s": "Bps", "share": "percentunit", "": "short"}
"""Grafana's names of ours."""


@dataclass(frozen=True, slots=True)
class Query:
    """`legend` names a series, with its labels in double braces."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    unit: str
    meaning: str
    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


def _rate(sample: str, by: str = "") -> str:
    rate = f"rate({sample}[{WINDOW}])"
    return f"sum by ({by}) ({rate})" if by else f"sum({rate})"


def _quantiles(histogram: str, *quantiles: float) -> tuple[Query, ...]:
    buckets = _rate(f"{histogram}_bucket", "le")
    return tuple(Query(f"histogram_quantile({q}, {buckets})", f"p{100 * q:g}") for q in quantiles)


def _share(part: str, whole: str, legend: str, by: str = "") -> Query:
    return Query(f"{_rate(part, by)} / {_rate(whole, by)}", legend)


def _events(component: str, *events: str) -> tuple[Query, ...]:
    chosen = f'maskcast_grammar_events_total{{component="{component}",event=~"{"|".join(events)}"}}'
    return (Query(_rate(chosen, "event"), "{{event}}"),)


ROWS = (
    Row(
        "Requests",
        (
            Panel("Requests", "1/s", "answered, by status", (Query(_rate("maskcast_requests_total", "status"), "{{status}}"),)),
            Panel(
                "Tenants",
                "1/s",
                "requests answered, by the name of their key",
                (Query(_rate("maskcast_requests_total", "tenant"), "{{tenant}}"),),
            ),
            Panel("Answer time", "s", "from the request to its last byte", _quantiles("maskcast_request_seconds", 0.5, 0.95, 0.99)),
            Panel(
                *("Faults", "share", "of all answers, those that are the service's own fault (5xx); 503 is that it is full"),
                (
                    _share('maskcast_requests_total{status=~"5..",status!="503"}', "maskcast_requests_total", "errors"),
                    _share('maskcast_requests_total{status="503"}', "maskcast_requests_total", "full"),
                ),
            ),
            Panel(
                "Time to first token", "s", "in the engines, queue and prefill", _quantiles("vllm_time_to_first_token_seconds", 0.5, 0.95)
            ),
            Panel("Time per token", "s", "between two outputs of a stream", _quantiles("vllm_inter_token_latency_seconds", 0.5, 0.95)),
            Panel(
                *("Tokens", "1/s", "prompts computed, answers, and what of these a grammar forced"),
                (
                    Query(_rate("vllm_prompt_tokens_total"), "prompts"),
                    Query(_rate("vllm_generation_tokens_total"), "answers"),
                    Query(_rate("maskcast_forced_tokens_total"), "forced"),
                ),
            ),
            Panel(
                "Checked answers",
                "1/s",
                "with `unenforceable: check`",
                (Query(_rate("maskcast_answer_checks_total", "event"), "{{event}}"),),
            ),
        ),
    ),
    Row(
        "Grammars",
        (
            Panel(
                "Where artifacts come from",
                "1/s",
                "in the compile pool",
                _events("compiler", "memory_hits", "redis_hits", "compiled", "stopgaps"),
            ),
            Panel(
                "Refused",
                "1/s",
                "grammars that are not compiled",
                _events("compiler", "refused", "remembered", "timed_out", "failed", "busy"),
            ),
            Panel(
                "Replicas",
                "1/s",
                "where model replicas find artifacts that came with no request",
                _events("model", "memory_hits", "redis_hits", "pool_calls"),
            ),
            Panel(
                *("Redis", "1/s", "calls that failed, took too long, or were not made for that"),
                _events("compiler", "redis_server_errors", "redis_server_timeouts", "redis_server_skipped"),
            ),
            Panel(
                *("Answers of the compile pool", "s", "95 of 100 take less, by where the artifact comes from"),
                (Query(f"histogram_quantile(0.95, {_rate('maskcast_grammar_seconds_bucket', 'le, tier')})", "{{tier}}"),),
            ),
            Panel(
                *("Compiles", "s", "95 of 100 take less, by backend: waiting for a child, compiling, and loading in an engine"),
                tuple(
                    Query(
                        f"histogram_quantile(0.95, {_rate(f'maskcast_{name}_seconds_bucket', 'le, backend')})", f"{name}, {{{{backend}}}}"
                    )
                    for name in ("compile_queue", "compile", "load")
                ),
            ),
        ),
    ),
    Row(
        "Engines",
        (
            Panel("Running", "", "requests in each engine", (Query("sum by (replica) (maskcast_engine_running)", "{{replica}}"),)),
            Panel("Waiting", "", "requests that engines have taken and not begun", (Query("sum(vllm_num_requests_waiting)", "waiting"),)),
            Panel(
                *("Step", "ms", "mean of a step, and what of it went into masks"),
                tuple(
                    Query(f"{_rate(f'maskcast_engine_{part}_us_total')} / {_rate('maskcast_engine_steps_total')} / 1000", part)
                    for part in ("step", "mask")
                ),
            ),
            Panel("KV cache", "share", "of each engine's cache that is in use", (Query("max(vllm_kv_cache_usage_perc)", "fullest"),)),
            Panel(
                "Forced",
                "share",
                "of the tokens of answers",
                (_share("maskcast_forced_tokens_total", "vllm_generation_tokens_total", "forced"),),
            ),
            Panel(
                "Segments",
                "",
                "tokens of a forced segment",
                (_share("maskcast_forced_tokens_total", "maskcast_forced_segments_total", "mean"),),
            ),
            Panel("Grammars held", "", "by each engine", (Query("sum by (replica) (maskcast_engine_grammars_resident)", "{{replica}}"),)),
            Panel(
                *("Restarts", "", "engines that ended, since their replica began"),
                (Query("sum by (replica) (maskcast_engine_restarts_total)", "{{replica}}"),),
            ),
        ),
    ),
    Row(
        "Mask broadcasters",
        (
            Panel("Frames", "1/s", "steps whose masks were published", (Query(_rate("maskcast_mask_frames_total"), "frames"),)),
            Panel(
                "Late",
                "share",
                "of the frames, those that engines filled themselves",
                (_share("maskcast_mask_late_total", "maskcast_mask_frames_total", "late"),),
            ),
            Panel(
                *("Bytes", "B/s", "of frames, and of the same masks as rows"),
                (Query(_rate("maskcast_mask_frame_bytes_total"), "frames"), Query(_rate("maskcast_mask_naive_bytes_total"), "rows")),
            ),
            Panel("Refused engines", "", "sent away for what they said", (Query("sum(maskcast_mask_refused_total)", "engines"),)),
        ),
    ),
)


def panels() -> Iterator[Panel]:
    for row in ROWS:
        yield from row.panels


def dashboard() -> dict[str, Any]:
    """As Grafana imports it."""
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "uid": "maskcast",
        "title": "Maskcast",
        "tags": ["maskcast"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [source]},
        "panels": list(_placed()),
    }


def _placed() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for row in ROWS:
        number += 1
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "panels": [], "gridPos": _place(24, 1, 0, top)}
        top += 1
        for position, panel in enumerate(row.panels):
            number += 1
            line, column = divmod(position, COLUMNS)
            yield {**_panel(panel), "id": number, "gridPos": _place(WIDTH, HEIGHT, column * WIDTH, top + line * HEIGHT)}
        top += HEIGHT * -(-len(row.panels) // COLUMNS)


def _panel(panel: Panel) -> dict[str, Any]:
    letters = "ABCDEFGH"
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.meaning,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": UNITS[panel.unit], "min": 0}, "overrides": []},
        "targets": [
            {"refId": letter, "datasource": SOURCE, "expr": query.expression, "legendFormat": query.legend}
            for letter, query in zip(letters, panel.queries, strict=False)
        ],
    }


def _place(width: int, height: int, left: int, top: int) -> dict[str, int]:
    return {"w": width, "h": height, "x": left, "y": top}


def dashboard_json() -> str:
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(dashboard_json(), encoding="utf-8")
