"""What was promised of drafts, and what became of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from prometheus_client.parser import text_string_to_metric_families

from deployments.reporting.quantiles import median
from deployments.reporting.report import Row, Target
from load_tests.front_door.figures import STREAM, Found
from load_tests.real_model.tasks import EXTRACTION

STOCK, NGRAM, SUFFIX, JUMPS, DRAFTS = SIDES = ("stock", "stock, n-gram", "stock, suffix", "jumps alone", "drafts")
PROMISED = {(1, STOCK): 3.0, (1, NGRAM): 1.5, (32, STOCK): 1.8}
"""Requests a second of extraction: drafts by another side, with so many clients."""
NOWHERE_BELOW = 0.97
FORWARDS = 0.5


ACCEPTED_HEADINGS = ("what is drafted", "tokens", "accepted")
WHAT = {
    "forced": "forced text between others",
    "recent": "values as the tenant's last answers had them",
    "words": "whole values of the prompt or the answer so far",
    "prompt": "parts of values of the prompt",
    "answer": "parts of values of the answer so far",
    "end": "ends of values",
}
_COUNTED = {"maskcast_engine_drafts_total": "drafts", "maskcast_engine_accepted_drafts_total": "accepted"}
HEADINGS = ("task", "clients", *SIDES, f"{DRAFTS} / {JUMPS}", "forwards a request")


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """Requests a second of each side; forwards of jumps alone and with drafts."""
    rows = _timed(rows)
    found = Found(rows, JUMPS, DRAFTS)
    every = {row["clients"] for row in rows}
    return [_line(found, task, clients) for task, clients in found.cells(every, STREAM)]


def _line(found: Found, task: str, clients: int) -> list[str]:
    def middle(side: str, figure: str) -> str:
        value = median(row[figure] for row in found.side(side, task, clients, STREAM) if row[figure] is not None)
        return "–" if value is None else f"{value:.2f}" if figure == "requests_per_s" else f"{value:.1f}"

    more = found.ratio("requests_per_s", task, clients)
    speeds = [middle(side, "requests_per_s") for side in SIDES]
    forwards = " : ".join(middle(side, "pieces_per_request") for side in (JUMPS, DRAFTS))
    return [task, str(clients), *speeds, "–" if more is None else f"{more:.2f} ×", forwards]


def accepted_rows(page: str, turn: int) -> list[Row]:
    """Drafts by where they come from, of a page of metrics; none where there is no such source."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if (counted := _COUNTED.get(sample.name)) is not None:
                found.setdefault(sample.labels["source"], dict.fromkeys(_COUNTED.values(), 0.0))[counted] += sample.value
    return [{"turn": turn, "source": source, **counts} for source, counts in sorted(found.items())]


def accepted_lines(rows: Sequence[Row]) -> list[list[str]]:
    """Of all turns together."""
    return [[what, f"{drafts:,.0f}", f"{accepted / drafts:.0%}"] for what, drafts, accepted in _counts(rows)]


def draw(rows: Sequence[Row], path: Path) -> None:
    """A PNG: how many tokens of each kind were drafted, and how many of them were the model's own."""
    counts = list(_counts(rows))[::-1]
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots()
    names = [what for what, _, _ in counts]
    axes.barh(names, [drafts for _, drafts, _ in counts], color="#c6dbef", label="drafted")
    bars = axes.barh(names, [accepted for _, _, accepted in counts], color="#08519c", label="accepted")
    axes.bar_label(bars, [f" {accepted / drafts:.0%}" for _, drafts, accepted in counts], label_type="edge", color="#333333")
    axes.set_title("Drafts, by what is drafted: tokens", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=90)


def _counts(rows: Sequence[Row]) -> Iterator[tuple[str, float, float]]:
    """What is drafted, how many tokens of it in all turns, and how many were accepted; without what never was."""
    told = [row for row in rows if "source" in row]
    for source, what in WHAT.items():
        drafts, accepted = (sum(row[key] for row in told if row["source"] == source) for key in ("drafts", "accepted"))
        if drafts:
            yield what, drafts, accepted


def targets(rows: Sequence[Row]) -> list[Target]:
    """Of the cells that were run; ratios are medians over turns of those within a turn."""
    rows = _timed(rows)
    return [*_promised(rows), *_nowhere_below(Found(rows, JUMPS, DRAFTS)), *_sound(rows)]


def _timed(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if "source" not in row]


def _promised(rows: Sequence[Row]) -> Iterator[Target]:
    for (clients, side), least in PROMISED.items():
        found = Found(rows, side, DRAFTS)
        if found.side(side, EXTRACTION, clients, STREAM):
            name = f"{EXTRACTION}, {clients} client{'s' if clients > 1 else ''}: requests a second, {DRAFTS} / {side}"
            yield Target.at_least(name, found.ratio("requests_per_s", EXTRACTION, clients), least, "×")
    found = Found(rows, JUMPS, DRAFTS)
    if found.side(JUMPS, EXTRACTION, 1, STREAM):
        name = f"{EXTRACTION}, 1 client: forwards a request, {DRAFTS} / {JUMPS}"
        yield Target.at_most(name, found.ratio("pieces_per_request", EXTRACTION, 1), FORWARDS, "×")


def _nowhere_below(found: Found) -> Iterator[Target]:
    every = {row["clients"] for row in found.rows}
    for task, clients in found.cells(every, STREAM):
        name = f"{task}, {clients} client{'s' if clients > 1 else ''}: requests a second, {DRAFTS} / {JUMPS}"
        yield Target.at_least(name, found.ratio("requests_per_s", task, clients), NOWHERE_BELOW, "×")


def _sound(rows: Sequence[Row]) -> Iterator[Target]:
    yield Target.at_most("requests that were not answered", float(sum(row["failed"] for row in rows)), 0, "")
    yield Target.at_most("answers that are not what was asked for", float(sum(row["wrong"] for row in rows)), 0, "")
