"""`maskcast simulate` writes what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from deployments.cli import app
from deployments.simulation import SimulationFailed, scenarios
from grammar_service.bench.report import BenchReport
from router.simulation.policies import POLICIES
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
