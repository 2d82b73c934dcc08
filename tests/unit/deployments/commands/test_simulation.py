"""`maskcast simulate` writes what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from deployments.commands.cli import app
from deployments.commands.simulation import SimulationFailed, cells, scenarios, simulate, table
from deployments.reporting.report import BenchReport
from router.simulation.ablation import SHOWN_ELSEWHERE, WITHOUT
from router.simulation.figures import Figures
from router.simulation.policies import CONSISTENT, POLICIES
from router.simulation.scenarios import NAMES, Size

TINY = ["simulate", "--replicas", "2", "--schemas", "20", "--seconds", "0.5", "--rate", "2"]


def test_the_command_compares_all_policies_in_all_scenarios(tmp_path: Path) -> None:
    written, drawn = tmp_path / "new" / "out.json", tmp_path / "plots" / "out.png"
    ran = CliRunner().invoke(app, [*TINY, "--json", str(written), "--plot", str(drawn)])
    assert ran.exit_code == 0, ran.output
    rows = BenchReport.read(written).rows
    assert [row["policy"] for row in rows] == [*POLICIES] * len(NAMES)
    assert list(dict.fromkeys(row["scenario"] for row in rows)) == [*NAMES]
    assert drawn.read_bytes().startswith(b"\x89PNG")


def test_large_figures_are_shown_whole_on_a_narrow_terminal() -> None:
    large = Figures(
        "scale-up", CONSISTENT, 2000, 300_000, 60_123.0, 21_034.5, 503_123.0, 600_000.0, 912.34, 4123.0, 121.0, 1.0, 0, 326_210, 0, 0, 1
    )
    console = Console(width=80)
    with console.capture() as shown:
        console.print(table([large]))
    heading, _, row = shown.get().splitlines()[1:4]
    assert heading.split()[-1] == "prefix"
    assert row.split()[-8:] == cells(large.row())


def test_a_heuristic_can_be_taken_out(tmp_path: Path) -> None:
    written = tmp_path / "out.json"
    one = [*TINY, "--scenario", "cpu", "--json", str(written)]
    assert CliRunner().invoke(app, [*one, "--without", "bound", "--without", "slack"]).exit_code == 0
    with pytest.raises(SimulationFailed, match="bound"):
        simulate(scenarios(Size(2, 5, 0.5, 1.0), 0, only="steady"), 0, lambda *_: None, ["nonsense"])


def test_all_heuristics_are_taken_out_in_turn_for_two_seeds(tmp_path: Path) -> None:
    written = tmp_path / "out.json"
    ran = CliRunner().invoke(app, [*TINY, "--scenario", "hang", "--ablate", "--json", str(written)])
    assert ran.exit_code == 0, ran.output
    report = BenchReport.read(written)
    names = ["power of two", "nothing", *WITHOUT]
    assert [(row["seed"], row["without"]) for row in report.rows] == [(seed, name) for seed in (0, 1) for name in names]
    assert len(report.targets) == 1 + len(WITHOUT.keys() - SHOWN_ELSEWHERE)


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
