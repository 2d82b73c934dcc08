"""The clients' process: what it takes of the processors is told apart from what the servers take."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection

from load_tests.errors import Stuck
from load_tests.front_door.clients.closed_loop import run_course
from load_tests.front_door.clients.messages import Answer, Answered, Course, PieceCourse, PiecesCame, Report, WindowBegan, WindowEnded
from load_tests.front_door.clients.piece_loop import run_pieces

PATIENCE_S = 180.0


class ClientProcess:
    """One course at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def answers(self, course: Course, began: Callable[[], None], ended: Callable[[WindowEnded], None]) -> Sequence[Answer]:
        """`began` and `ended` are called when the window's time begins and ends.

        Raises:
            Stuck: nothing is heard for too long.
        """
        report = self._run(course, began, ended)
        assert isinstance(report, Answered)
        return report.answers

    def pieces(self, course: PieceCourse, began: Callable[[], None], ended: Callable[[WindowEnded], None]) -> PiecesCame:
        """The same, of pieces."""
        report = self._run(course, began, ended)
        assert isinstance(report, PiecesCame)
        return report

    def _run(self, course: Course | PieceCourse, began: Callable[[], None], ended: Callable[[WindowEnded], None]) -> Answered | PiecesCame:
        self._connection.send(course)
        while not isinstance(report := self._next(), Answered | PiecesCame):
            if isinstance(report, WindowBegan):
                began()
            else:
                ended(report)
        return report

    def _next(self) -> Report:
        try:
            if self._connection.poll(PATIENCE_S):
                report: Report = self._connection.recv()
                return report
        except EOFError:
            raise Stuck("the clients' process has ended") from None
        raise Stuck(f"the clients' process says nothing for {PATIENCE_S:g} s")


@contextmanager
def client_process() -> Iterator[ClientProcess]:
    """It ends with the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_main, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ClientProcess(ours)
    finally:
        ours.close()
        process.join(PATIENCE_S)


def _main(connection: Connection) -> None:
    while True:
        try:
            course: Course | PieceCourse = connection.recv()
        except EOFError:
            return
        if isinstance(course, Course):
            os.environ.update(course.joins)
        run = run_course(course, connection.send) if isinstance(course, Course) else run_pieces(course, connection.send)
        asyncio.run(run)
