from __future__ import annotations

from pathlib import Path

from deployments.local.replica_logs import TAIL_LINES, last_lines_of_gcs


def test_why_ray_does_not_start_is_what_its_first_process_wrote_last(tmp_path: Path) -> None:
    (tmp_path / "gcs_server.out").write_text("".join(f"step {number}\n" for number in range(2 * TAIL_LINES)))
    (tmp_path / "gcs_server.err").write_text("address already in use\n")
    (tmp_path / "raylet.out").write_text("waiting\n")
    said = last_lines_of_gcs(tmp_path)
    assert said == ["address already in use", *(f"step {number}" for number in range(TAIL_LINES, 2 * TAIL_LINES))]
    assert last_lines_of_gcs(tmp_path / "none") == []
