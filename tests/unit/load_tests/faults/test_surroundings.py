"""Disks that are full and clocks that are set are so for the processes that are meant, and for nobody else."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest

from load_tests.faults import clocks, log_disk
from load_tests.faults.__main__ import merged, skipped, targets
from load_tests.faults.stages import stages
from load_tests.faults.strikes import FULL_DISK, STRIKES

WRITER = """
while read file; do
  head -c 8192 /dev/zero 2>/dev/null > "$file" && echo written || echo refused
done
"""


@pytest.mark.skipif(bool(log_disk.why_not()), reason=f"no small disk can be had: {log_disk.why_not()}")
def test_a_full_disk_refuses_its_node_and_nobody_else_until_the_end(tmp_path: Path) -> None:
    command = [*log_disk.mounting(tmp_path), "sh", "-c", WRITER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        (given, told) = process.stdin, process.stdout
        assert given is not None
        assert told is not None

        def said(name: str, given: IO[str] = given, told: IO[str] = told) -> str:
            given.write(f"{tmp_path / name}\n")
            return told.readline().strip()

        assert said("first") == "written"
        with log_disk.filled(tmp_path, process.pid):
            assert said("second") == "refused"
            (tmp_path / "elsewhere").write_bytes(bytes(8192))
        assert said("third") == "written"
        assert [each.name for each in tmp_path.iterdir()] == ["elsewhere"]
        given.close()


WAITER = """
import sys, threading, time
for line in sys.stdin:
    began = time.monotonic()
    time.sleep(0.01)
    threading.Event().wait(0.01)
    print(time.time(), time.monotonic(), time.monotonic() - began, flush=True)
"""


@pytest.mark.skipif(bool(clocks.why_not()), reason=clocks.why_not())
def test_a_clock_that_is_set_is_that_of_one_node_and_its_processes_run_on(tmp_path: Path) -> None:
    nodes = clocks.Clocks(tmp_path)
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WAITER], env=nodes.environment(node), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            for node in ("one", "other")
        )
        for by_s in (0, 3600, -3600):
            nodes.set("one", by_s)
            for process, wanted in ((one, by_s), (other, 0)):
                wall, steady, waited = told(process)
                assert wall == pytest.approx(time.time() + wanted, abs=30)
                assert steady == pytest.approx(time.monotonic(), abs=30)
                assert waited < 10
        one.communicate()
        other.communicate()


def told(process: subprocess.Popen[str]) -> list[float]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return list(map(float, process.stdout.readline().split()))


def test_every_strike_has_its_stage() -> None:
    assert [strike for stage in stages() for strike in stage.strikes] == list(STRIKES)


def test_what_is_chosen_is_in_the_stage_that_has_it() -> None:
    chosen = [stage.of("clock,Redis hangs") for stage in stages()]
    assert [len(stage.strikes) for stage in chosen] == [2, 0, 2, 0]


def test_a_strike_that_cannot_be_had_here_is_told_and_breaks_no_promise() -> None:
    row = skipped(FULL_DISK, "no disk")
    lost, ended = targets([row], 1)
    assert lost.holds
    assert ended.holds
    struck = {"strike": FULL_DISK.name, "lost": 0, "back_s": 1.0}
    assert merged([struck], [row]) == [struck]
    assert merged([row], [struck]) == [struck]
