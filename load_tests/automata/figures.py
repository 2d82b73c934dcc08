"""The table of the figures, on a terminal and on a page."""

from __future__ import annotations

from deployments.reporting.report import Row

_FIGURES = {
    "compile_ms": "compile, ms",
    "load_ms": "load, ms",
    "mask_p50_us": "mask p50, µs",
    "mask_p99_us": "mask p99, µs",
    "token_p50_us": "token p50, µs",
    "payload_bytes": "payload, bytes",
    "memory_bytes": "memory, bytes",
}
HEADINGS = ("", "backend", *_FIGURES.values())


def cells(row: Row) -> list[str]:
    """Of one language on one backend; a language that this one does not take has a reason in place of its figures."""
    head = [str(row["case"]), str(row["backend"])]
    if "refused" in row:
        return [*head, str(row["refused"]), *[""] * (len(_FIGURES) - 1)]
    return [*head, *(f"{row[name]:,}" for name in _FIGURES)]
