"""What `maskcast grammar automaton` prints."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deployments.commands.grammar.automaton import CANONICAL, Automata, Counts

_EXACT_DIGITS = 15


def show_automata(file: Path, found: Automata, console: Console) -> None:
    """A column for each automaton over tokens."""
    title = f"{escape(str(file))}: an automaton over bytes of {found.byte_states:,} states, and over tokens:"
    table = Table("", *found.indexes, title=title, title_justify="left")
    counts = [Counts.of(index) for index in found.indexes.values()]
    for name, values in (
        ("states", [f"{one.states:,}" for one in counts]),
        ("edges", [f"{one.edges:,}" for one in counts]),
        ("states of the smallest", ["too large to tell" if one.fewest is None else f"{one.fewest:,}" for one in counts]),
        ("states with one way on", [f"{one.single:,}" for one in counts]),
        ("paths of such states", [_paths(one) for one in counts]),
        ("token sequences", [_number(one.tokenizations) for one in counts]),
        ("model calls", [_calls(one) for one in counts]),
    ):
        table.add_row(name, *values)
    console.print(table)
    if found.missing is not None:
        console.print(f"{CANONICAL}: {found.missing}", markup=False, highlight=False, soft_wrap=True)


def _paths(one: Counts) -> str:
    return f"{one.forced:,}, of up to {one.longest:,} tokens" if one.forced else "none"


def _number(count: int | None) -> str:
    if count is None:
        return "endlessly many"
    digits = len(str(count))
    return f"{count:,}" if digits <= _EXACT_DIGITS else f"about {str(count)[0]}.{str(count)[1]}e{digits - 1}"


def _calls(one: Counts) -> str:
    if one.tokenizations is None:
        return "no bound"
    if one.calls is None:
        return "too many sequences to tell"
    lengths, calls = zip(*one.calls, strict=True)
    return f"{_range(calls)} for {_range(lengths)} tokens"


def _range(values: tuple[int, ...]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)} to {max(values)}"
