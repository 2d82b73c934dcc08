"""One HTML page of a run: what was asked, what came of it, and charts."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from deployments.reporting.quantiles import quantile
from deployments.reporting.report import Row, machine
from load_tests.load.counted import Counted
from load_tests.load.driving import Asked
from load_tests.load.scenarios import Scenario

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
BINS = 20
TICKS = 5
STYLE = "body{font:15px sans-serif;max-width:72em;margin:2em auto;color:#333}td,th{padding:.2em .8em;text-align:right}img{width:100%}"


@dataclass(frozen=True, slots=True)
class Ran:
    """A scenario of so many seconds, what was asked in it, and what the service counted."""

    scenario: Scenario
    seconds: float
    asked: Sequence[Asked]
    counted: Counted


def row(ran: Ran) -> Row:
    """Its figures; times in milliseconds. `lost`: no answer, or half of one."""
    answered = [each for each in ran.asked if each.is_answered]
    ended_s = max((each.due_s + each.late_s + each.whole_s for each in ran.asked), default=ran.seconds)
    return {
        "scenario": ran.scenario.name,
        "asked": len(ran.asked),
        "answered": len(answered),
        "refused": sum(400 <= each.status < 500 for each in ran.asked),
        "busy": sum(each.status == 503 for each in ran.asked),
        "failed": sum(each.failed or each.status in (500, 502, 504) for each in ran.asked),
        "lost": sum(each.status == 0 for each in ran.asked),
        "answered_per_s": round(len(answered) / ended_s, 2),
        "tokens_per_s": round(sum(each.tokens for each in answered) / ended_s, 1),
        **_percentiles("first_token_ms", (each.first_s for each in answered)),
        **_percentiles("token_ms", (each.token_s for each in answered)),
        **_percentiles("whole_ms", (each.whole_s for each in answered)),
        "sent_late_p99_ms": _ms(quantile([each.late_s for each in ran.asked], 0.99)),
        "forced_share": _rounded(ran.counted.forced),
        "requests_a_step": _rounded(ran.counted.batch),
        **{f"grammars_{tier}": round(number) for tier, number in ran.counted.tiers.items()},
    }


def page(runs: Sequence[Ran], command: str) -> str:
    rows = [row(ran) for ran in runs]
    where = ", ".join(f"{value}" for value in machine().values())
    body = [f"<h1>Load</h1><p><code>{escape(command)}</code> on {escape(where)}</p>", _table(rows), _image(compared(runs))]
    for ran in runs:
        body += [f"<h2>{escape(ran.scenario.name)}</h2><p>{escape(ran.scenario.about)}</p>", _image(charts(ran))]
    return f"<!doctype html><html lang=en><meta charset=utf-8><title>Load</title><style>{STYLE}</style>{''.join(body)}</html>\n"


def _table(rows: Sequence[Row]) -> str:
    """A column for each scenario."""
    names = list(rows[0]) if rows else []
    lines = ([name.replace("_", " "), *("–" if each[name] is None else f"{each[name]}" for each in rows)] for name in names)
    return f"<table>{''.join('<tr><th>' + '<td>'.join(map(escape, line)) for line in lines)}</table>"


def _image(figure: Figure) -> str:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=90)
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'


def compared(runs: Sequence[Ran]) -> Figure:
    """Two panels with a bar for each scenario: the share of its tokens that were forced, and how many requests its steps had."""
    figure = Figure(figsize=(13, 1 + 0.3 * len(runs)), layout="constrained")
    forced, batch = figure.subplots(1, 2)
    _bars(forced, "forced tokens, of all [%]", {ran.scenario.name: 100 * (ran.counted.forced or 0.0) for ran in runs}, "{:.1f}")
    _bars(batch, "requests with a grammar in a step, on average", {ran.scenario.name: ran.counted.batch or 0.0 for ran in runs}, "{:.2f}")
    return figure


def charts(ran: Ran) -> Figure:
    """Six panels: requests over time, three distributions of times, where grammars were found, shares of tenants."""
    figure = Figure(figsize=(13, 6.5), layout="constrained")
    axes = figure.subplots(2, 3).flat
    answered = [each for each in ran.asked if each.is_answered]
    _over_time(axes[0], ran, answered)
    _distribution(axes[1], "time to first token [ms]", (each.first_s for each in answered))
    _distribution(axes[2], "time per output token [ms]", (each.token_s for each in answered))
    _distribution(axes[3], "time to the end [ms]", (each.whole_s for each in answered))
    _bars(axes[4], "where grammars were found", ran.counted.tiers)
    _bars(axes[5], "tokens by tenant", _tokens(answered))
    return figure


def _over_time(axes: Axes, ran: Ran, answered: Sequence[Asked]) -> None:
    ends = [each.due_s + each.late_s + each.whole_s for each in answered]
    last = max([ran.seconds, *ends])
    for label, times in (("asked", [each.due_s for each in ran.asked]), ("answered", ends)):
        numbers, edges = np.histogram(times, bins=BINS, range=(0, last))
        axes.plot((edges[:-1] + edges[1:]) / 2, numbers * BINS / last, label=label)
    axes.set_title("requests a second, over time [s]", loc="left", fontsize=9)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)


def _distribution(axes: Axes, title: str, seconds: Iterable[float | None]) -> None:
    """The share of answers that took no longer, in milliseconds; percentiles are marked."""
    known = sorted(1000 * each for each in seconds if each is not None)
    axes.set_title(title, loc="left", fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(TICKS))  # fractions of a second have long labels, and more of them run into each other
    axes.set_ylim(0, 1.02)
    axes.margins(x=0.15)  # room for what is written beside the last mark
    if known:
        axes.step(known, np.arange(1, len(known) + 1) / len(known), where="post")
        for name, share in SHARES.items():
            at = float(np.quantile(known, share))
            axes.plot([at], [share], "o", color="#333333", markersize=3)
            axes.annotate(f"{name}: {at:.3g}", (at, share), (4, -9), textcoords="offset points", fontsize=8)


def _bars(axes: Axes, title: str, numbers: Mapping[str, float], written: str = "{:,.0f}") -> None:
    bars = axes.barh(list(numbers), list(numbers.values()))
    axes.bar_label(bars, fmt=written, padding=3, fontsize=8)
    axes.margins(x=0.12)  # room for what is written beside the longest
    axes.set_title(title, loc="left", fontsize=9)
    axes.invert_yaxis()


def _tokens(answered: Iterable[Asked]) -> Counter[str]:
    found = Counter[str]()
    for each in answered:
        found[each.tenant] += each.tokens
    return found


def _percentiles(name: str, seconds: Iterable[float | None]) -> dict[str, Any]:
    known = [each for each in seconds if each is not None]
    return {f"{name}_{share_name}": _ms(quantile(known, share)) for share_name, share in SHARES.items()}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
