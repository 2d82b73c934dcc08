"""What the rows say: which promises hold, and the tables of the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from deployments.reporting.report import Target
from load_tests.gpu import forwards, frames, kernels, staged_writes
from load_tests.gpu.rows import Row

SLOWER = 1.2
"""Than xgrammar's kernel, ours may be at most that."""
WORTH_IT = 2.0
"""How many times cheaper one forward of eight tokens should be than eight forwards, with up to so many requests:"""
FEW = 64
_EIGHT = 8
_NOT = "_not"
_AGAINST_XGRAMMAR = "kernel: time, ours / xgrammar's, where it is worst"


def targets(rows: Sequence[Row]) -> list[Target]:
    """Of the parts that have run."""
    run = {row["part"] for row in rows}
    parts = {kernels.PART: _of_kernels, frames.PART: _of_frames, forwards.FORWARDS: _of_forwards, staged_writes.PART: _of_writes}
    return [target for part, of in parts.items() if part in run for target in of(_of(rows, part))]


def gains(rows: Iterable[Row]) -> dict[tuple[int, int], float]:
    """By requests b and segment m: how many times longer m forwards take than one forward of m, m * G(b, 1) / G(b, m)."""
    times = {(row["requests"], row["segment"]): row["ms"] for row in _of(rows, forwards.FORWARDS) if "ms" in row}
    return {(b, m): m * times[b, 1] / time for (b, m), time in times.items() if (b, 1) in times}


def pays_from(rows: Iterable[Row]) -> dict[int, int | None]:
    """By requests: the shortest segment from which on every one takes less time in one forward than token by token; None: there is none."""
    found = gains(rows)
    return {
        b: _from([(m, gain) for (other, m), gain in sorted(found.items()) if other == b and m > 1]) for b in sorted({b for b, _ in found})
    }


def forward_cells(rows: Sequence[Row]) -> list[list[str]]:
    """A line for each number of requests: from where on a segment pays, and for each segment the forward's time and its gain."""
    found, times = gains(rows), {(row["requests"], row["segment"]): row for row in _of(rows, forwards.FORWARDS) if "ms" in row}
    lines = []
    for b, least in pays_from(rows).items():
        cells = [_cell(times.get((b, m)), found.get((b, m))) for m in segments(rows)]
        lines.append([str(b), "never" if least is None else str(least), *cells])
    return lines


def segments(rows: Iterable[Row]) -> list[int]:
    return sorted({row["segment"] for row in _of(rows, forwards.FORWARDS) if "segment" in row})


def graph_cells(rows: Iterable[Row]) -> list[list[str]]:
    """Requests, segment, and the times in ms by graph."""
    times: dict[tuple[int, int], dict[str, float]] = {}
    for row in _of(rows, forwards.GRAPHS):
        if "ms" in row:
            times.setdefault((row["requests"], row["segment"]), {})[row["graph"]] = row["ms"]
    ways = (forwards.FULL, forwards.PIECEWISE, forwards.EAGER)
    return [[str(b), str(m), *(f"{of[way]:.2f}" if way in of else "" for way in ways)] for (b, m), of in times.items()]


def kernel_cells(rows: Iterable[Row]) -> list[list[str]]:
    """Vocabulary, rows, type, masks, and microseconds: ours, xgrammar's, torch's."""
    heads, ways = ("vocabulary", "rows", "type", "masks"), ("ours_us", "xgrammar_us", "torch_us")
    return [
        [*(str(row[head]) for head in heads), *(_us(row.get(way)) for way in ways)] for row in _of(rows, kernels.PART) if "wrong" in row
    ]


def frame_cells(rows: Iterable[Row]) -> list[list[str]]:
    """Vocabulary, rows, bytes of a frame, wrong logits, what waited, and microseconds: of the host's, and of the device where launches are
    slower than what they launch."""
    heads, times = ("vocabulary", "rows", "frame_bytes", "wrong"), ("host_us", "step_us")
    found = [row for row in _of(rows, frames.PART) if "wrong" in row]
    return [[*(str(row[head]) for head in heads), row["waits"] or "", *(_us(row[time]) for time in times)] for row in found]


def write_cells(rows: Iterable[Row]) -> list[list[str]]:
    """Requests, segment, wrong tokens, what waited, and microseconds of the host's."""
    found = [row for row in _of(rows, staged_writes.PART) if "wrong" in row]
    return [[*(str(row[head]) for head in ("requests", "segment", "wrong")), row["waits"] or "", _us(row["host_us"])] for row in found]


def overlap_cells(rows: Iterable[Row], between: Mapping[int, float]) -> list[list[str]]:
    """Requests for which both are known, G(b, 1) and C in ms, G / C, and how many free tokens stand at least between two segments where
    overlapping steps win. `between`: C in microseconds by requests."""
    forward = {row["requests"]: row["ms"] for row in _of(rows, forwards.FORWARDS) if "ms" in row and row["segment"] == 1}
    return [
        [str(b), f"{g:.2f}", f"{between[b] / 1000:.2f}", f"{g * 1000 / between[b]:.2g}", str(free_from(g * 1000, between[b]))]
        for b, g in forward.items()
        if between.get(b)
    ]


def free_from(g: float, c: float) -> int:
    """The least r for which `c` / r < `g` < r `c`, see `load_tests.overlap.figures`."""
    return int(max(g / c, c / g)) + 1


def notes(rows: Iterable[Row]) -> list[str]:
    """What has no figures, and why, each reason once."""
    rows = list(rows)
    found = [f"{row['part']}: {row.get('failed') or row.get('skipped')}" for row in rows if "failed" in row or "skipped" in row]
    found += [f"{row['part']}: {name.removesuffix(_NOT)}: {row[name]}" for row in rows for name in row if name.endswith(_NOT)]
    if (run := _of(rows, kernels.PART)) and not _compared(run):
        found.append(f"{_AGAINST_XGRAMMAR}: not measured, xgrammar's kernel was not there")
    return list(dict.fromkeys(found))


def _of(rows: Iterable[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]


def _of_kernels(rows: Sequence[Row]) -> list[Target]:
    """Without xgrammar's kernel nothing is promised against it."""
    found = [Target.at_most("kernel: logits that are not as torch's reference leaves them", _total(rows, "wrong"), 0, "")]
    if compared := _compared(rows):
        slowest = max((row["ours_us"] / row["xgrammar_us"] for row in compared if "ours_us" in row and "xgrammar_us" in row), default=None)
        found += [
            Target.at_most("kernel: logits that xgrammar's kernel leaves otherwise", _total(compared, "xgrammar_wrong"), 0, ""),
            Target.at_most(_AGAINST_XGRAMMAR, slowest, SLOWER, ""),
        ]
    return found


def _compared(rows: Iterable[Row]) -> list[Row]:
    """Of the kernels' rows those in which xgrammar's was there."""
    return [row for row in rows if any(name.startswith("xgrammar_") for name in row)]


def _of_frames(rows: Sequence[Row]) -> list[Target]:
    return [
        Target.at_most("frame: logits that are not as they should be", _total(rows, "wrong"), 0, ""),
        Target.at_most("frame: vocabularies on whose logits something waits for the device", _waiting(rows), 0, ""),
    ]


def _of_forwards(rows: Sequence[Row]) -> list[Target]:
    found = {b: gain for (b, m), gain in gains(rows).items() if m == _EIGHT and b <= FEW}
    name = f"jumping: {_EIGHT} forwards of a token / one of {_EIGHT}, the least with up to {FEW} requests"
    return [Target.at_least(name, min(found.values()) if found else None, WORTH_IT, "×")]


def _of_writes(rows: Sequence[Row]) -> list[Target]:
    return [
        Target.at_most("staged writes: tokens that are not as written", _total(rows, "wrong"), 0, ""),
        Target.at_most("staged writes: sizes at which something waits for the device", _waiting(rows), 0, ""),
    ]


def _total(rows: Sequence[Row], name: str) -> float | None:
    """None where a row was not measured: nothing may be said then of all."""
    return float(sum(row[name] for row in rows)) if all(name in row for row in rows) else None


def _waiting(rows: Sequence[Row]) -> float | None:
    return float(sum(row["waits"] is not None for row in rows)) if all("waits" in row for row in rows) else None


def _from(by_segment: Sequence[tuple[int, float]]) -> int | None:
    worth = [m for m, gain in by_segment if gain > 1]
    losing = [m for m, gain in by_segment if gain <= 1]
    return min((m for m in worth if not losing or m > max(losing)), default=None)


def _cell(row: Row | None, gain: float | None) -> str:
    if row is None or "ms" not in row:
        return ""
    return f"{row['ms']:.2f}" if gain is None else f"{row['ms']:.2f} ({gain:.2g} ×)"


def _us(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
