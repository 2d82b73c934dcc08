"""What our models came to, beside what the paper says of its own: what is satisfied, for how many calls a token, and how many times
faster than CDLH that is."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from load_tests.lookahead.arms import APPX, CDLH, CDSL
from load_tests.lookahead.figures import GREEDY

METHODS = (CDLH.name, APPX.name, CDSL.name)
HEADINGS = ("task", "target", "draft", GREEDY, *METHODS, *(f"{name}: draft + target calls" for name in METHODS), "CDLH-appx, ×", "CDSL, ×")
OURS = "ours"
_INK, _OURS, _PAPERS = "#333333", "#d94801", "#9ecae1"
_SHAPES = {"CDLH": "s", "CDLH-appx": "o", "CDSL": "^"}
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """Percent of texts that are satisfied; calls of the draft and of the target for a token; speed-ups over CDLH, by forwards."""

    names: tuple[str, str, str]
    greedy: float
    cdlh: float
    appx: float
    cdsl: float
    calls: tuple[tuple[float, float], ...]
    appx_speedup: float
    cdsl_speedup: float

    def cells(self) -> list[str]:
        shares = (self.greedy, self.cdlh, self.appx, self.cdsl)
        calls = [f"{draft:.2f} + {target:.2f}" for draft, target in self.calls]
        return [*self.names, *(f"{share:.1f}" for share in shares), *calls, f"{self.appx_speedup:.2f}", f"{self.cdsl_speedup:.2f}"]


def pairs(rows: Sequence[Row]) -> list[Pair]:
    """Ours first."""
    of = {row["method"]: row for row in rows}
    cdlh, appx, cdsl = methods = [of[name] for name in METHODS]
    calls = tuple((row["draft_calls"], row["target_calls"]) for row in methods)
    names, speedups = (OURS, "0.9 million", "0.1 million"), (cdlh["p"] / appx["p"], cdlh["p"] / cdsl["p"])
    ours = Pair(names, of[GREEDY]["hard"], cdlh["hard"], appx["hard"], cdsl["hard"], calls, *speedups)
    return [ours, *map(_published, _published_rows())]


def draw(rows: Sequence[Row], path: Path) -> None:
    """A PNG: a point for each method and pair of models, further right if faster, higher if more satisfied. Folders are made."""
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    for pair in reversed(pairs(rows)):
        is_ours = pair.names[0] == OURS
        points = {"CDLH": (1, pair.cdlh), "CDLH-appx": (pair.appx_speedup, pair.appx), "CDSL": (pair.cdsl_speedup, pair.cdsl)}
        for method, (speedup, share) in points.items():
            color, label = (_OURS, f"{method}, ours") if is_ours else (_PAPERS, None)
            axes.plot(speedup, share - pair.greedy, _SHAPES[method], color=color, markersize=11 if is_ours else 7, label=label)
    axes.axhline(0, color=_INK, linewidth=0.6)
    axes.set_xscale("log")
    axes.set_xlabel("times as fast as CDLH, by forwards", color=_INK)
    axes.set_ylabel("texts satisfied, less those of greedy decoding: points", color=_INK)
    axes.set_title("Look-ahead decoding: our pair of models, and the paper's (pale, same shapes)", loc="left", color=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _published_rows() -> list[dict[str, str]]:
    """The paper's tables 3 and 5 to 8 as they are printed: a row a pair of models."""
    with Path(__file__).with_name("published_calls.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _published(row: Mapping[str, str]) -> Pair:
    greedy, cdlh, appx, cdsl = (float(row[f"satisfied_{method}"]) for method in ("greedy", "cdlh", "appx", "cdsl"))
    calls = tuple((float(row.get(f"{method}_draft_calls", 0)), float(row[f"{method}_target_calls"])) for method in ("cdlh", "appx", "cdsl"))
    speedups = (float(row["appx_speedup"]), float(row["cdsl_speedup"]))
    return Pair((row["task"], row["target"], row["draft"]), greedy, cdlh, appx, cdsl, calls, *speedups)
