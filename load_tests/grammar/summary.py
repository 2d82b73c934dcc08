"""A run's figures by group, for a person to judge: who was refused, what was slow, what each way took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table

from deployments.reporting.quantiles import quantile
from load_tests.grammar.messages import Measured
from load_tests.grammar.targets import Figures, ReadyCase, ready_cases

_SHARES = (0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True, slots=True)
class Summary:
    """Tables of a run."""

    figures: Figures

    def tables(self) -> list[Table]:
        return [self._served(), self._times(), self._ready()]

    def _served(self) -> Table:
        """How many cases each outcome has; of every case its last turn."""
        table = Table("outcome", "cases", title="cases", title_justify="left")
        for outcome, count in Counter(map(_outcome, self._last_pool())).most_common():
            table.add_row(outcome, str(count))
        return table

    def _times(self) -> Table:
        table = Table("ms", "n", "p50", "p90", "p99", "max", title="compile replica", title_justify="left")
        pool = [row for row in self.figures.pool if row.number("cold_ms") is not None]
        quick = [row for row in pool if row.values.get("quick")]
        slow = [row for row in pool if not row.values.get("quick")]
        _add(table, "cold first mask, llguidance first", _numbers(quick, "cold_ms"))
        _add(table, "  of it resolving the spec", _numbers(quick, "resolve_ms"))
        _add(table, "  of it the replica's answer", _numbers(quick, "answer_ms"))
        _add(table, "  bare llguidance, in process", _numbers(quick, "bare_ms"))
        _add(table, "cold first mask, where llguidance cannot", _numbers(slow, "cold_ms"))
        _add(table, "hit in memory", _numbers(pool, "hit_ms"))
        return table

    def _ready(self) -> Table:
        """Totals of the ways over the same cases."""
        table = Table("ready to mask, ms in all", "cases", "ours", "oracle", "compile", "fetch (else compile)")
        cases = ready_cases(self.figures.ready)
        groups = {
            "all": cases,
            "on xgrammar": [case for case in cases if case.backend == "xgrammar"],
            "on xgrammar, slow": [case for case in cases if case.backend == "xgrammar" and case.is_slow],
            "on llguidance": [case for case in cases if case.backend == "llguidance"],
        }
        for name, group in groups.items():
            table.add_row(name, str(len(group)), *(f"{total:,.1f}" for total in _totals(group)))
        return table

    def _last_pool(self) -> list[Measured]:
        return list({row.case: row for row in self.figures.pool}.values())


def _outcome(row: Measured) -> str:
    if row.fault is not None:
        return "ended its process"
    if "refused" in row.values:
        return "refused"
    if "slow_refusal" in row.values:
        return f"stays on {row.values['first_backend']}, {row.values['backend']} refuses or takes too long"
    return f"on {row.values['backend']}" + (", llguidance first" if row.values["first_backend"] != row.values["backend"] else "")


def _numbers(rows: Iterable[Measured], figure: str) -> list[float]:
    return [number for row in rows if (number := row.number(figure)) is not None]


def _add(table: Table, name: str, values: list[float]) -> None:
    shares = [quantile(values, share) for share in _SHARES]
    table.add_row(name, str(len(values)), *("–" if value is None else f"{value:.3g}" for value in shares))


def _totals(cases: Iterable[ReadyCase]) -> list[float]:
    group = list(cases)
    fetched = [case.fetch_ms if case.fetch_ms is not None else case.compile_ms for case in group]
    return [sum(c.ours_ms for c in group), sum(c.oracle_ms for c in group), sum(c.compile_ms for c in group), sum(fetched)]
