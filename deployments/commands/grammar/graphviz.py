"""Automata in Graphviz's language ("The DOT Language", graphviz.org)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deployments.commands.grammar.panels import Panel

_HEAD = (
    "digraph automata {",
    "  rankdir=LR;",
    '  graph [fontname="sans-serif"]; node [fontname="sans-serif", shape=circle]; edge [fontname="monospace"];',
)


def graphviz(panels: Sequence[Panel]) -> str:
    """A cluster for each panel. A state that a text may end in is a double circle; one with one way on is filled."""
    upwards = reversed([*enumerate(panels)])  # which is how Graphviz piles them up
    lines = [*_HEAD, *(line for number, panel in upwards for line in _cluster(number, panel)), "}"]
    return "\n".join(lines) + "\n"


def _cluster(number: int, panel: Panel) -> Iterator[str]:
    yield f"  subgraph cluster_{number} {{"
    yield f"    label={_quoted(panel.title)}; labeljust=l;"
    for state in panel.states:
        shape = ", shape=doublecircle" if state in panel.accepting else ""
        filled = ', style=filled, fillcolor="#deebf7"' if state in panel.single else ""
        yield f"    a{number}_{state} [label={_quoted(str(state))}{shape}{filled}];"
    for edge in panel.edges:
        yield f"    a{number}_{edge.source} -> a{number}_{edge.target} [label={_quoted(edge.label)}];"
    yield "  }"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
