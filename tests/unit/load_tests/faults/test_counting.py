"""What became of requests is counted so that nothing lost is called by another name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import psutil
import pytest

from deployments.reporting.report import BenchReport
from load_tests.errors import BenchFailed
from load_tests.faults.__main__ import COMMAND, kept, merged, row, targets
from load_tests.faults.clients import (
    CUT,
    FAILED,
    HUNG,
    REFUSED,
    STRUCK,
    UNANSWERED,
    WHOLE,
    Clients,
    Ended,
    fitted_letters,
    is_listening,
    outcome,
)
from load_tests.faults.strikes import STRIKES
from load_tests.faults.waiting import wait_for
from load_tests.reporting.running_service import PACKAGES

SPARED = next(each for each in STRIKES if "killed" in each.name)
DOOR = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    connection, _ = server.accept()
    connection.recv(1 << 16)
    connection.sendall(sys.argv[1].encode())
    sys.stdin.readline()
    connection.close()
    sys.stdin.read()
"""
"""Takes one request, says what it was given, ends the connection at the first line, and itself at the end of its input."""
HEAD = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\ndata: "


def chunk(text: str, reason: str | None = None) -> str:
    return f"data: {json.dumps({'choices': [{'delta': {'content': text}, 'finish_reason': reason}]})}\n\n"


def plain(text: str, reason: str) -> str:
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": reason}]})


ERROR = json.dumps({"error": {"code": "engine_dead", "message": "it ended"}})


@pytest.mark.parametrize(
    ("status", "text", "stream", "wanted"),
    [
        (200, chunk("ab") + chunk("c", "stop") + "data: [DONE]\n\n", True, WHOLE),
        (200, chunk("ab") + chunk("c", "stop"), True, CUT),
        (200, chunk("ab") + "data: [DONE]\n\n", True, CUT),
        (200, chunk("ab") + chunk("c", "length") + "data: [DONE]\n\n", True, CUT),
        (200, chunk("ab") + f"data: {ERROR}\n\n", True, FAILED),
        (200, "", True, CUT),
        (200, plain("abc", "stop"), False, WHOLE),
        (200, plain("abc", "length"), False, CUT),
        (503, ERROR, False, FAILED),
        (503, ERROR, True, FAILED),
    ],
)
def test_an_answer_is_whole_or_says_why_not(status: int, text: str, stream: bool, wanted: str) -> None:
    assert outcome(status, text, stream) == wanted


@dataclass
class Served:
    port: int
    headers: dict[str, str] = field(default_factory=dict)


@contextmanager
def door(says: str) -> Iterator[tuple[Served, psutil.Process, IO[str]]]:
    with subprocess.Popen([sys.executable, "-c", DOOR, says], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Served(int(process.stdout.readline())), psutil.Process(process.pid), process.stdin
        process.kill()


@pytest.mark.parametrize("says", [HEAD, ""])
def test_a_connection_that_ends_with_its_ingress_is_told_apart(says: str) -> None:
    with door(says) as (served, process, _), Clients(served, 1, door=process) as clients:
        process.kill()
        wait_for(lambda: clients.ended, 20, "the end of the request")
    assert clients.ended[0].how == STRUCK


@pytest.mark.parametrize(("says", "how"), [(HEAD, CUT), ("", UNANSWERED)])
def test_a_connection_that_ends_and_leaves_its_ingress_is_lost(says: str, how: str) -> None:
    with door(says) as (served, process, control), Clients(served, 1, door=process) as clients:
        control.write("end it\n")
        control.flush()
        wait_for(lambda: clients.ended, 20, "the end of the request")
    assert clients.ended[0].how == how


def test_an_ingress_that_has_shut_its_door_is_waited_for_by_nobody() -> None:
    with door("") as (served, process, _):
        assert is_listening(process, served.port)
        assert not is_listening(process, served.port + 1)
        process.kill()
        process.wait()
        assert not is_listening(process, served.port)


@pytest.mark.parametrize(("seconds", "letters"), [((8.0, 8.0, 8.0), 150), ((1.0, 2.0, 3.0), 300), ((4.0, 5.0, 60.0), 240)])
def test_answers_are_as_long_as_the_machine_is_fast(seconds: tuple[float, ...], letters: int) -> None:
    assert fitted_letters([Ended(0, 1.0, 1.0 + each, WHOLE) for each in seconds]) == letters


def test_answers_are_fitted_to_nothing_that_fails() -> None:
    with pytest.raises(BenchFailed, match="not all were answered"):
        fitted_letters([Ended(0, 1.0, 2.0, WHOLE), Ended(1, 1.0, 2.0, FAILED)])


def test_only_connections_to_what_was_struck_are_not_called_lost() -> None:
    counted = row(SPARED.name, {WHOLE: 10, FAILED: 1, CUT: 1, UNANSWERED: 2, HUNG: 4, STRUCK: 8, REFUSED: 16}, 1.0, 2.0, 300)
    numbers = [counted[name] for name in ("accepted", "answered", "failed", "connections_struck", "lost", "refused_connections")]
    assert numbers == [26, 10, 1, 8, 7, 16]
    assert not targets([counted], 1)[0].holds


def test_a_strike_after_which_not_all_are_answered_holds_no_promise() -> None:
    lost, ended, back = targets([row(SPARED.name, {WHOLE: 1}, None, 2.0, 300)], 2)
    assert (lost.holds, ended.holds, back.holds) == (True, False, False)


def test_a_strike_that_was_repeated_has_its_last_row_and_the_others_keep_theirs() -> None:
    first, second = STRIKES[:2]
    earlier = [row(second.name, {WHOLE: 1}, 1.0, 2.0, 300), row(first.name, {WHOLE: 1}, 1.0, 2.0, 300)]
    again = row(first.name, {WHOLE: 2}, 1.0, 2.0, 300)
    assert merged(earlier, [again]) == [again, earlier[0]]


def test_rows_of_another_machine_or_other_versions_are_never_passed_off_as_of_this_one(tmp_path: Path) -> None:
    path, here = tmp_path / "faults.json", BenchReport.here(COMMAND, PACKAGES, [], [row(SPARED.name, {WHOLE: 1}, 1.0, 2.0, 300)])
    assert kept(path, "zygote") == []
    here.write(path)
    assert kept(path, "zygote") == here.rows
    for other in (replace(here, machine={**here.machine, "cores": 1000}), replace(here, versions={**here.versions, "ray": "1.0"})):
        other.write(path)
        assert kept(path, "") == []
        with pytest.raises(BenchFailed, match="another machine"):
            kept(path, "zygote")


def test_strikes_are_told_apart_by_their_names() -> None:
    assert len({each.name for each in STRIKES}) == len(STRIKES)
