"""The table of a run: outcomes by keyword, totals, and every deviation by name."""

from __future__ import annotations

from dataclasses import dataclass

from grammar_service.conformance.verdict import Deviation, Outcome, Reason, Tally


@dataclass(frozen=True, slots=True)
class Row:
    """One keyword (file of the suite): the outcomes of its cases, and how many of its schemas were refused."""

    keyword: str
    tally: Tally
    schemas: int
    refused_schemas: int


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """`rows` and `deviations` are of schemas as JSON Schema means them (`closed` False). `totals` has one line for each of the ways
    that were tried: "maskcast", "maskcast, closed", "xgrammar alone", "llguidance alone". `refusals` are the messages for refused
    schemas with how often each came, most frequent first."""

    rows: tuple[Row, ...]
    deviations: tuple[Deviation, ...]
    totals: dict[str, Tally]
    refusals: tuple[tuple[str, int], ...]

    def of(self, outcome: Outcome) -> tuple[Deviation, ...]:
        return tuple(deviation for deviation in self.deviations if deviation.outcome is outcome)

    @property
    def unexplained(self) -> tuple[Deviation, ...]:
        """Valid instances that are rejected for no known reason."""
        return tuple(deviation for deviation in self.of(Outcome.OVER) if deviation.reason is Reason.NONE)

    def lines(self) -> list[str]:
        """The table as text, one line a row."""
        width = max([len(row.keyword) for row in self.rows] + [len(name) for name in self.totals] + [7])
        head = f"{'keyword':<{width}}  {'schemas':>7}  {'cases':>6}" + "".join(f"  {outcome.value:>17}" for outcome in Outcome)
        rows = [_line(row.keyword, f"{row.schemas:>7}", row.tally, width) for row in self.rows]
        return [head, *rows, *(_line(name, " " * 7, tally, width) for name, tally in self.totals.items())]


def _line(name: str, schemas: str, tally: Tally, width: int) -> str:
    return f"{name:<{width}}  {schemas}  {tally.total:>6}" + "".join(f"  {tally.counts[outcome]:>17}" for outcome in Outcome)
