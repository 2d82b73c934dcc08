"""How far a long command is."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class CaseProgress:
    """A bar for each part on a terminal; elsewhere a line when a part begins."""

    def __init__(self, console: Console) -> None:
        self._console = console
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> CaseProgress:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def show(self, part: str, done: int, total: int) -> None:
        """Tell that `done` of `total` cases of a part are behind us."""
        if part not in self._tasks:
            self._tasks[part] = self._progress.add_task(part, total=total)
            if not self._console.is_terminal:
                self.say(f"{part}: {total} cases")
        self._progress.update(self._tasks[part], completed=done)

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
