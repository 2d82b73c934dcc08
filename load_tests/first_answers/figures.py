"""What first answers may take, and what they took; pure."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.reporting.quantiles import median, quantile
from deployments.reporting.report import Row, Target

REAL, TEKKEN = VOCABULARIES = ("SmolLM2's, 49,152 tokens", "tekken's, 131,072 tokens")
LONG_MS = 300.0
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
HEADINGS = ("vocabulary", "served", *SHARES, "longest", f"over {LONG_MS:g} ms", "refused", "p50 of a refusal")
SLOWEST_HEADINGS = ("vocabulary", "schema", "bytes", "first answer", "second answer")
_SHOWN = 8
_OK, _REFUSED = 200, 400


def targets(rows: Sequence[Row]) -> list[Target]:
    middles = [(vocabulary, median(_more(rows, vocabulary))) for vocabulary in VOCABULARIES]
    failed = sum(row["status"] not in (_OK, _REFUSED) for row in rows)
    return [
        *(Target.at_most(f"{name}: the first answer, p50, more than the second", more, LONG_MS, "ms") for name, more in middles if more),
        Target.at_most("requests that were neither answered nor refused", failed, 0, ""),
    ]


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """What first answers take more than second ones, by vocabulary."""
    return [_line(rows, vocabulary) for vocabulary in VOCABULARIES if _more(rows, vocabulary)]


def slowest(rows: Sequence[Row]) -> list[list[str]]:
    served = [row for row in rows if row["status"] == _OK]
    found = sorted(served, key=lambda row: row["second_ms"] - row["first_ms"])[:_SHOWN]
    return [[row["vocabulary"], row["schema"], f"{row['bytes']:,}", _shown(row["first_ms"]), _shown(row["second_ms"])] for row in found]


def _line(rows: Sequence[Row], vocabulary: str) -> list[str]:
    more = _more(rows, vocabulary)
    refused = [row["first_ms"] for row in rows if row["vocabulary"] == vocabulary and row["status"] == _REFUSED]
    figures = [*(quantile(more, share) for share in SHARES.values()), max(more)]
    long = sum(one > LONG_MS for one in more)
    return [vocabulary, str(len(more)), *map(_shown, figures), str(long), str(len(refused)), _shown(median(refused))]


def _shown(ms: float | None) -> str:
    return "–" if ms is None else f"{ms:,.0f} ms"


def _more(rows: Sequence[Row], vocabulary: str) -> list[float]:
    return [row["first_ms"] - row["second_ms"] for row in rows if row["vocabulary"] == vocabulary and row["status"] == _OK]
