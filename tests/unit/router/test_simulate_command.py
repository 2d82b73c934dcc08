"""`maskcast simulate` writes what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from deployments.cli import app
from deployments.simulation import SimulationFailed, cells, scenarios, table
from grammar_service.bench.report import BenchReport
from router.simulation.figures import Figures
from router.simulation.policies import CONSISTENT, POLICIES
from router.simulation.scenarios import Size

TINY = ["simulate", "--replicas", "2", "--schemas", "20", "--seconds", "0.5", "--rate", "2"]


def test_the_command_compares_all_policies_in_all_scenarios(tmp_path: Path) -> None:
    written, drawn = tmp_path / "new" / "out.json", tmp_path / "plots" / "out.png"
    ran = CliRunner().invoke(app, [*TINY, "--json", str(written), "--plot", str(drawn)])
    assert ran.exit_code == 0, ran.output
    rows = BenchReport.read(written).rows
    assert [row["policy"] for row in rows] == [*POLICIES] * 4
    assert list(dict.fromkeys(row["scenario"] for row in rows)) == ["steady", "burst", "failures", "scale-up"]
    assert drawn.read_bytes().startswith(b"\x89PNG")


def test_large_figures_are_shown_whole_on_a_narrow_terminal() -> None:
    large = Figures("scale-up", CONSISTENT, 2000, 300_000, 60_123.0, 21_034.5, 503_123.0, 912.34, 4123.0, 121.0, 1.0, 0, 326_210, 0, 1)
    console = Console(width=80)
    with console.capture() as shown:
        console.print(table([large]))
    heading, _, row = shown.get().splitlines()[1:4]
    assert heading.split()[-1] == "prefix"
    assert row.split()[-8:] == cells(large.row())


@pytest.mark.parametrize(("text", "complaint"), [("", "no request"), ("nonsense", "line 1")])
def test_a_trace_that_cannot_be_played_is_an_error_of_ours(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SimulationFailed, match=complaint):
        scenarios(Size(), 0, path)


def test_one_scenario_can_be_played_alone() -> None:
    assert [scenario.name for scenario in scenarios(Size(2, 5, 0.5, 1.0), 0, only="failures")] == ["failures"]
    with pytest.raises(SimulationFailed, match="steady, burst"):
        scenarios(Size(2, 5, 0.5, 1.0), 0, only="nonsense")
